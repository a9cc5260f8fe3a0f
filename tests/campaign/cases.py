"""The controllers of the campaign: each a random mechanism in one size and one unit system."""

import functools
from collections.abc import Callable

import numpy as np

from campaign.builders import (
    FEET,
    SOLES,
    feet,
    held_body,
    linkage,
    particles,
    robot,
    tree,
    walker,
)
from campaign.case import Case
from campaign.units import KM_T_MIN, MM_G_S, SI

BUILDERS: dict[str, Callable[[], Case]] = {
    "four_bar_mm": lambda: linkage("four-bar", 1e-3, MM_G_S, 1, repeat=[0, 1]),
    "four_bar": lambda: linkage("four-bar", 1.0, SI, 2, repeat=[3]),
    "four_bar_km": lambda: linkage("four-bar", 1e3, KM_T_MIN, 3, repeat=[0]),
    "massless_four_bar": lambda: linkage("four-bar", 1.0, SI, 4, massless=[1]),
    "massless_four_bar_mm": lambda: linkage("four-bar", 1e-3, SI, 5, massless=[1], repeat=[1]),
    "massless_four_bar_km": lambda: linkage("four-bar", 1e3, KM_T_MIN, 6, massless=[1]),
    "parallelogram": lambda: linkage("parallelogram", 1.0, SI, 7),
    "parallelogram_mm": lambda: linkage("parallelogram", 1e-3, KM_T_MIN, 8),
    "parallelogram_km": lambda: linkage("parallelogram", 1e3, MM_G_S, 9),
    "five_bar": lambda: linkage("five-bar, one motor", 1.0, MM_G_S, 10),
    "five_bar_km": lambda: linkage("five-bar, one motor", 1e3, SI, 11),
    "six_bar": lambda: linkage("six-bar, massless rod", 1.0, SI, 12),
    "six_bar_mm": lambda: linkage("six-bar, massless rod", 1e-3, MM_G_S, 13),
    "slider_crank": lambda: linkage("slider-crank", 1.0, SI, 21),
    "slider_crank_mm": lambda: linkage("slider-crank", 1e-3, MM_G_S, 22),
    "held_body": lambda: held_body(1.0, SI, 14),
    "held_body_km": lambda: held_body(1e3, KM_T_MIN, 15, motors=2),
    "held_body_mm": lambda: held_body(1e-3, MM_G_S, 16),
    "particles": lambda: particles(1.0, SI, 17),
    "particles_km": lambda: particles(1e3, KM_T_MIN, 18),
    "tree_1": lambda: tree(1.0, SI, 101),
    "tree_2": lambda: tree(1e-3, MM_G_S, 102, links=7, repeat=1),
    "tree_3": lambda: tree(1e3, KM_T_MIN, 103, links=6, planar=True),
    "tree_4": lambda: tree(1.0, KM_T_MIN, 104, links=9, loops=2, repeat=1),
    "tree_5": lambda: tree(1.0, MM_G_S, 105, links=8, planar=True, loops=2, repeat=2),
    "tree_6": lambda: tree(1e3, SI, 106, links=5, planar=True, share=0.3),
    "tree_7": lambda: tree(0.1, SI, 107, links=10, loops=2, share=0.4),
    "tree_8": lambda: tree(1e3, MM_G_S, 108, links=7, repeat=1, share=1.0),
    "tree_9": lambda: tree(1e-3, SI, 109, links=6, planar=True, repeat=1),
    "tree_10": lambda: tree(1.0, SI, 110, links=12, loops=3, repeat=1),
    "walker_1": lambda: walker(1.0, SI, 201),
    "walker_2": lambda: walker(0.01, MM_G_S, 202, links=True),
    "walker_3": lambda: walker(1e3, KM_T_MIN, 203),
    "walker_4": lambda: walker(1.0, MM_G_S, 204, links=True),
    "walker_5": lambda: walker(1.0, SI, 205, speed=3.0),
    "tree_11": lambda: tree(1.0, SI, 111, links=5, planar=True, share=0.2),
    "tree_12": lambda: tree(1e3, KM_T_MIN, 112, links=8, loops=2),
    "four_bar_model": lambda: robot("four_bar", limits="model"),
    "five_bar_model": lambda: robot("five_bar", limits="model"),
    "bennett": lambda: robot("spatial_loop", limits="model", size=0.3),
    "bricard": lambda: robot("bricard", limits="model", size=0.3),
    "cooperating_arms": lambda: robot("cooperating_arms", limits="model"),
    "planar_3rrr": lambda: robot("planar_3rrr", limits="model"),
    "planar_biped": lambda: robot("planar_biped", limits="model", size=1.0),
    "quadruped": lambda: robot(
        "quadruped", limits="model", poses=[("body", "trunk")], contacts=feet(FEET), q0="stand",
        spread=0.1, largest_level=1.0,
    ),
    "quadruped_pressed": lambda: robot(
        "quadruped", limits="model", poses=[("body", "trunk")], q0="stand", spread=0.1, seed=2,
        contacts=feet(FEET, sides=7, min_force=2.0, max_force=120.0), largest_level=1.0,
        law={"force_weight": 1e-4},
    ),
    "quadruped_hasty": lambda: robot(
        "quadruped", limits=np.tile([-12.0, 12.0], (12, 1)), poses=[("body", "trunk")], q0="stand",
        contacts=feet(FEET, friction=0.3, sides=5, min_force=15.0), spread=0.2, speed=2.0, seed=4,
        largest_level=1.0,
    ),
    "humanoid": lambda: robot(
        "humanoid", limits="model", poses=[("body", "pelvis")], contacts=feet(SOLES), q0="stand",
        spread=0.05, speed=0.2, largest_level=1.0, size=1.0,
    ),
    "quadruped_slipping": lambda: robot(
        "quadruped", limits="model", com="trunk", q0="stand", spread=0.1, seed=6, slipping=True,
        contacts=feet(FEET), largest_level=1.0, law={"contact_damping": 20.0},
    ),
    "humanoid_by_its_mass": lambda: robot(
        "humanoid", limits="model", com="pelvis", contacts=feet(SOLES), q0="stand", spread=0.05,
        speed=0.2, largest_level=1.0, size=1.0, seed=7,
    ),
    "five_bar_stabilised": lambda: robot("five_bar", limits="model", law={"stabilisation": 50.0}),
    "humanoid_rigid_soles": lambda: robot(
        "humanoid", limits="model", poses=[("body", "pelvis")], contacts=feet(SOLES), q0="stand",
        spread=0.05, speed=0.2, largest_level=0.5, size=1.0, law={"internal_forces": "none"},
        seed=3,
    ),
}  # fmt: skip


@functools.cache
def case(name: str) -> Case:
    """Return a case by name."""
    return BUILDERS[name]()
