"""The mechanisms on which all formulations have to agree, each with what is hard about it."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import mujoco
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from support import lagrangian_mechanisms as by_hand

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A system and where its states are looked for.

    Attributes:
        name: name in `MECHANISMS`.
        system: the mechanism.
        rank: of its constraint Jacobian at admissible states, all rows active.
        kinds: words for what is hard about it.
        centre: (nq,) configuration around which states are spread.
        spread: standard deviation of a state, (nv,) or a scalar, m or rad.
        poses: rng, count → (nq, count) configurations, where they cannot be found by Newton.
        model: the MuJoCo model that the system was read from.
    """

    name: str
    system: mb.System
    rank: int
    kinds: tuple[str, ...]
    centre: Array
    spread: float = 0.3
    poses: Callable[[np.random.Generator, int], Array] | None = None
    model: mujoco.MjModel | None = None


def read(source: str | mujoco.MjSpec) -> tuple[mb.System, mujoco.MjModel]:
    """Return the system and the model of one of our files, of XML text or of a spec."""
    if isinstance(source, mujoco.MjSpec):
        model = source.compile()
    elif source.startswith("<"):
        model = mujoco.MjModel.from_xml_string(source)
    else:
        model = mujoco.MjModel.from_xml_path(str(models.path(source)))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return mb.read_mjcf(model), model


def standing(name: str, held: dict[str, tuple[str, ...]]) -> mujoco.MjSpec:
    """Return a robot whose feet (body → sites) are held by point connections to the world."""
    spec = mujoco.MjSpec.from_file(str(models.path(name)))
    for body, site in ((body, site) for body, sites in held.items() for site in sites):
        joined = spec.add_equality()
        joined.type = mujoco.mjtEq.mjEQ_CONNECT
        joined.objtype = mujoco.mjtObj.mjOBJ_BODY
        joined.name1, joined.name2 = body, "world"
        joined.data[:3] = spec.site(site).pos
    return spec


FEET = {f"{leg}_foot": (leg,) for leg in ("FL", "FR", "RL", "RR")}
SOLES = {
    f"{side}_foot": tuple(f"{side}_foot_{i}" for i in range(1, 5)) for side in ("left", "right")
}

BALL_LOOP = """\
<mujoco>
  <option gravity="1 -2 -9"/>
  <default><joint type="ball" damping=".05"/></default>
  <worldbody>
    <body name="one"><joint name="j1"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .5 0 0" mass="1.3"/>
      <body name="two" pos=".5 0 0" euler="0 0 90"><joint name="j2" stiffness="2"/>
        <geom type="box" size=".25 .03 .05" pos=".25 0 0" mass=".7"/>
        <body name="three" pos=".5 0 0" euler="0 20 70"><joint name="j3" armature=".02"/>
          <geom type="box" size=".3 .04 .02" pos=".3 0 0" mass="1.1"/>
          <site name="tip" pos=".6 0 0"/></body></body></body>
    <site name="post" pos="-.07 .5 .2"/>
  </worldbody>
  <equality><connect site1="tip" site2="post"/></equality>
</mujoco>"""


def of_model(source: str | mujoco.MjSpec, rank: int, *kinds: str, spread: float = 0.3) -> Mechanism:
    """Return the mechanism of one of our models, of XML text or of a spec."""
    system, model = read(source)
    return Mechanism("", system, rank, kinds, system.tree.q0, spread, model=model)


def of_equations(
    build: Callable[[], mb.System], rank: int, *kinds: str, centre: list[float], spread: float = 0.3
) -> Mechanism:
    """Return a mechanism given by equations."""
    return Mechanism("", build(), rank, kinds, np.array(centre), spread)


def singular_slider_crank() -> Mechanism:
    """The slider-crank where two branches of its motion meet: rank 1 of 3, two freedoms."""
    system, model = read("slider_crank")

    def upright(rng: np.random.Generator, count: int) -> Array:
        angle = rng.choice([-np.pi / 2, np.pi / 2], count)
        return np.array([angle, np.zeros(count), angle])

    q0 = system.tree.q0
    kinds = ("redundant", "singular")
    return Mechanism("", system, 1, kinds, q0, poses=upright, model=model)


def switched_particles() -> Mechanism:
    """The particles on rods with a mask: any of the five rows may be off."""
    with_all = BUILDERS["chained_particles"]()
    kinds = ("switched", *with_all.kinds)
    return replace(with_all, system=with_all.system.with_mask(), kinds=kinds)


BUILDERS: dict[str, Callable[[], Mechanism]] = {
    "four_bar": lambda: of_model("four_bar", 2, "redundant"),
    "five_bar": lambda: of_model("five_bar", 2, "redundant"),
    "slider_crank": lambda: of_model("slider_crank", 2, "redundant"),
    "singular_slider_crank": singular_slider_crank,
    "cooperating_arms": lambda: of_model("cooperating_arms", 2, "redundant"),
    "arm_gripper": lambda: of_model("arm_gripper", 5, "redundant", "couplings"),
    "bennett": lambda: of_model("spatial_loop", 3, "overconstrained everywhere"),
    "bricard": lambda: of_model("bricard", 5, "overconstrained everywhere"),
    "planar_3rrr": lambda: of_model("planar_3rrr", 6, "redundant", spread=0.2),
    "ball_loop": lambda: of_model(BALL_LOOP, 3, "ball joints"),
    "standing_quadruped": lambda: of_model(
        standing("quadruped", FEET), 12, "floating base", spread=0.15
    ),
    "standing_humanoid": lambda: of_model(
        standing("humanoid", SOLES), 12, "floating base", "redundant", spread=0.1
    ),
    "chained_particles": lambda: of_equations(
        by_hand.chained_particles, 2, "redundant", "a row of zeros", centre=[1.0, -0.8, 1.5, -1.4]
    ),
    "switched_particles": switched_particles,
    "double_pendulum": lambda: of_equations(
        by_hand.double_pendulum, 0, "unconstrained", centre=[0.0, 0.0], spread=1.0
    ),
    "driven_truss": lambda: of_equations(
        by_hand.driven_truss, 4, "rheonomic", "no freedom left", centre=[1.0, 0.6, 0.2, 1.5],
        spread=0.2,
    ),
    "moving_pendulum": lambda: of_equations(
        by_hand.moving_pendulum, 2, "rheonomic", "redundant", centre=[0.5, -1.0, 0.9, -1.5]
    ),
    "knife_edge": lambda: of_equations(
        by_hand.knife_edge_on_a_turntable, 1, "non-holonomic", "affine", "rheonomic",
        centre=[0.3, -0.4, 0.2], spread=1.0,
    ),
    "rolling_disc": lambda: of_equations(
        by_hand.rolling_disc, 2, "non-holonomic", centre=[0.0, 0.0, 0.0, 0.2, 0.0]
    ),
    "climbing_particle": lambda: of_equations(
        by_hand.climbing_particle, 1, "non-holonomic", "nonlinear in v", "redundant", "rheonomic",
        centre=[0.2, -0.3, 0.5], spread=1.0,
    ),
    "elastic_slider_crank": lambda: of_equations(
        by_hand.elastic_slider_crank, 2, "elastic", centre=[0.9, 0.35, 0.8, 0.0, 0.0], spread=0.02
    ),
    "euler_parameters": lambda: of_equations(
        by_hand.top_in_euler_parameters, 4, "semidefinite",
        centre=[-0.1, 0.2, -0.3, 1.0, 0.0, 0.0, 0.0],
    ),
}  # fmt: skip
"""Name → how the mechanism is made."""

MECHANISMS = tuple(BUILDERS)


@functools.cache
def mechanism(name: str) -> Mechanism:
    """Return the mechanism `name`."""
    return replace(BUILDERS[name](), name=name)
