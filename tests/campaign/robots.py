"""Published robots with limits, and references up to 1 m and 1 rad away in each task."""

import functools
from collections.abc import Callable

import mujoco
from support.corpora import robot

from campaign.builders import FEET, SOLES, by_mujoco, feet
from campaign.case import Case
from campaign.units import SI
from mbcasadi import models

REACH = 1.0  # m, rad
GO2_LEGS = ("FL", "FR", "RL", "RR")
CASSIE_SOLE = ((0.01, 0.03, 0.0), (-0.08, 0.08, 0.0))
G1_SOLE = ((-0.05, 0.025, -0.03), (-0.05, -0.025, -0.03), (0.12, 0.03, -0.03), (0.12, -0.03, -0.03))


def with_sites(path, sites) -> mujoco.MjSpec:
    """Return a model with further sites: (name, body, place)."""
    spec = mujoco.MjSpec.from_file(str(path))
    for name, body, place in sites:
        spec.body(body).add_site(name=name, pos=place)
    return spec


def at_reach(name, source, *, size=0.5, **options) -> Case:
    """Return a case with references up to `REACH` away."""
    shared = {"limits": "model", "reach": REACH, "spread": 0.1, "speed": 0.2, "noisy": False}
    chosen = shared | {"switched_loops": False, "kp": 100.0, "seed": 1} | options
    return by_mujoco(name, source, size=size, units=SI, **chosen)


def cassie(on_ground=True, **options) -> Case:
    """Cassie on the origins of its feet; knees and hips of both legs have motors."""
    soles = feet(("left-foot", "right-foot"), kind="body", friction=0.8, sides=6)
    return at_reach(
        "Cassie", str(robot("men__agility_cassie__cassie")), q0="home",
        contacts=soles if on_ground else (),
        poses=[("body", "cassie-pelvis")], **({"spread": 0.01} | options),
    )  # fmt: skip


def cassie_on_four_points(**options) -> Case:
    """Cassie at its home pose on heel and toe of both feet; all motors, the pelvis alone tracks."""
    points = [
        (f"{side}_{k}", f"{side}-foot", place)
        for side in ("left", "right")
        for k, place in enumerate(CASSIE_SOLE)
    ]
    source = with_sites(robot("men__agility_cassie__cassie"), points)
    return at_reach(
        "Cassie on four points", source, q0="home", joints=(), poses=[("body", "cassie-pelvis")],
        contacts=feet([name for name, *_ in points], friction=0.7, sides=4),
        **({"spread": 0.003} | options),
    )  # fmt: skip


def go2(**options) -> Case:
    """Unitree's Go2 on the ends of its calves."""
    sites = [(leg, f"{leg}_calf", (0, 0, -0.213)) for leg in GO2_LEGS]
    source = with_sites(robot("men__unitree_go2__go2"), sites)
    return at_reach(
        "Go2", source, contacts=feet(GO2_LEGS, sides=8), q0="home", poses=[("body", "base")],
        **options,
    )  # fmt: skip


def g1(**options) -> Case:
    """Unitree's G1 on four points of each sole; its actuators are servos."""
    sites = [
        (f"{side}_{k}", f"{side}_ankle_roll_link", place)
        for side in ("left", "right")
        for k, place in enumerate(G1_SOLE)
    ]
    source = with_sites(robot("men__unitree_g1__g1"), sites)
    return at_reach(
        "G1", source, contacts=feet([name for name, *_ in sites]), q0="stand",
        poses=[("body", "pelvis"), ("body", "left_wrist_yaw_link")], **options,
    )  # fmt: skip


def aloha(**options) -> Case:
    """ALOHA's two arms with coupled fingers; its actuators are servos."""
    hands = [("body", "left/gripper_link"), ("body", "right/gripper_link")]
    source = str(robot("men__aloha__aloha"))
    return at_reach("ALOHA", source, poses=hands, q0="neutral_pose", **options)


def biped(**options) -> Case:
    """The planar biped with pinned feet."""
    return at_reach("biped", str(models.path("planar_biped")), poses=[("site", "hip")], **options)


def quadruped(**options) -> Case:
    """Our quadruped."""
    return at_reach(
        "quadruped", str(models.path("quadruped")), contacts=feet(FEET), q0="stand",
        poses=[("body", "trunk")], **options,
    )  # fmt: skip


def humanoid(**options) -> Case:
    """Our humanoid on four points of each sole."""
    return at_reach(
        "humanoid", str(models.path("humanoid")), contacts=feet(SOLES), q0="stand",
        poses=[("body", "pelvis")], **({"spread": 0.05} | options),
    )  # fmt: skip


ROBOTS: dict[str, Callable[[], Case]] = {
    "robot_quadruped": quadruped,
    "robot_quadruped_base_first": lambda: quadruped(priority=1e6, reach=3.0),
    "robot_humanoid": humanoid,
    "robot_biped": biped,
    "robot_cassie": cassie,
    "robot_cassie_pelvis_only": lambda: cassie(joints=()),
    "robot_cassie_on_four_points": cassie_on_four_points,
    "robot_cassie_in_the_air": lambda: cassie(on_ground=False, spread=0.1),
    "robot_cassie_pelvis_in_the_air": lambda: cassie(on_ground=False, joints=(), spread=0.1),
    "robot_go2": go2,
    "robot_go2_base_first": lambda: go2(priority=1e6, reach=3.0),
    "robot_go2_base_only": lambda: go2(joints=()),
    "robot_g1": g1,
    "robot_aloha": aloha,
    "robot_aloha_hands_only": lambda: aloha(joints=()),
}
"""Name → how the case is made; those of other makers need the folder of robots."""


@functools.cache
def robot_case(name: str) -> Case:
    """Return a robot's case by name."""
    return ROBOTS[name]()
