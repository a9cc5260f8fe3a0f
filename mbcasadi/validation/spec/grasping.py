"""Holding a ball: what `init` adds to a hand or gripper, and what shakes it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.errors import ProblemError
from mbcasadi.plant import FreeObject, Source, compile_model, with_object
from mbcasadi.plant.contact_share import contact_step
from mbcasadi.plant.contacts import ContactFrame, frame_index
from mbcasadi.plant.free_object import OBJECT
from mbcasadi.system import System, read_mjcf
from mbcasadi.system.geom_pairs import touching_pairs
from mbcasadi.validation.spec.grasp_scene import Grasp, Scene, mass_of_ball
from mbcasadi.validation.spec.grasp_search import grasp_of_gripper, grasp_of_hand

Array = NDArray[np.float64]

SIZES = (0.25, 0.2, 0.3)
"""Radii of a ball in a hand, in lengths of its longest finger."""
TRIED = 4
"""Grasps of a hand that are tried."""
SHAKEN = 0.5
"""Force that shakes the ball, in weights."""
FREQUENCY, WAVES = 2.0, 6
"""Hz, of the shaking; waves along each axis."""
ERROR = 0.1
"""Largest way of the ball, in diameters."""
ROUGHNESS = 0.7
"""Share of the friction that the controller counts on."""
SQUEEZE = 3.0
"""Normal forces, in those that carry weight and shaking by friction alone."""
AFAR = (0.0, 0.0, -1.0)
"""M, where the ball is while the hand is looked at."""


@dataclass(frozen=True)
class Hold:
    """A ball in a hand.

    Attributes:
        thing: the ball.
        q0: (nq,) with the ball.
        contacts: names of the contacts.
        friction: that the controller counts on, of each.
        min_force: of each contact, N.
    """

    thing: FreeObject
    q0: Array
    contacts: tuple[str, ...]
    friction: tuple[float, ...]
    min_force: float

    @property
    def pushes(self) -> list[tuple[list[float], float, float]]:
        """Force, N, start and stop, s, of the shaking along x, y and z."""
        force, lasts = SHAKEN * GRAVITY * self.thing.mass, WAVES / FREQUENCY
        rows = np.eye(3) * force
        return [(rows[k].tolist(), 0.5 + k * lasts, 0.5 + (k + 1) * lasts) for k in range(3)]

    @property
    def error(self) -> float:
        """Largest way of the ball, m."""
        return ERROR * self.thing.size


GRAVITY = 9.81
"""M/s²."""


def holds_of(source: Source, system: System, robot: RobotDescription) -> Iterator[Hold]:
    """Yield how a hand or gripper can hold a ball, at most `TRIED` ways.

    Args:
        source: the model without a ball.
        system: of the model.
        robot: of the model.

    Raises:
        ProblemError: no way to hold one is found.
    """
    tree = system.tree
    assert tree is not None
    length = max(limb.length for limb in robot.limbs_of("finger"))
    probe = FreeObject("ball", 2 * SIZES[0] * length, 1.0, AFAR, touches=_untouchable(source))
    model = compile_model(with_object(source, probe))
    authored = next(iter(tree.keyframes.values()), tree.q0)
    scene = Scene(model, np.concatenate([np.array(authored, dtype=float), [*AFAR, 1, 0, 0, 0]]))
    found = 0
    for grasp in _grasps(scene, system, length):
        yield _hold(source, probe, grasp)
        found += 1
        if found == TRIED:
            return
    if not found:
        raise ProblemError(
            f"task 'grasp' of '{robot.name}': no pose was found in which tips of its fingers hold "
            "a ball; expected at least two tips with shapes that may touch it from opposite sides, "
            "and actuators that close them"
        )


def _grasps(scene: Scene, system: System, length: float) -> Iterator[Grasp]:
    if system.nu == 1:
        grasp = grasp_of_gripper(scene)
        if grasp is not None:
            yield grasp
        return

    def couplings(q: Array) -> Array:
        return np.array(system.constraint(q[:-7]), dtype=float).ravel()

    held = couplings if system.nc else None
    yield from grasp_of_hand(scene, held, [share * length for share in SIZES])


def _untouchable(source: Source) -> tuple[str, ...]:
    """Return the geoms of a model of which none that moves touches anything; () where some do."""
    model = compile_model(source)
    moving = model.body_weldid[model.geom_bodyid] > 0
    meets = (model.geom_contype & 1) | (model.geom_conaffinity & 1)
    if np.any(meets[moving]):
        return ()
    return tuple(model.geom(k).name or f"geom{k}" for k in np.flatnonzero(moving))


def _hold(source: Source, probe: FreeObject, grasp: Grasp) -> Hold:
    """Return a grasp as contacts with forces that carry the ball."""
    size = 2 * grasp.radius
    x, y, z = (float(value) for value in grasp.centre)
    thing = replace(
        probe, size=_round(size), mass=_round(mass_of_ball(grasp.radius)), position=(x, y, z)
    )
    tree = read_mjcf(with_object(source, thing)).tree
    assert tree is not None
    pairs = {
        frozenset((pair.first.name, pair.second.name)): pair
        for pair in touching_pairs(tree)
        if OBJECT in (pair.first.name, pair.second.name)
    }
    chosen = [pairs[frozenset((tip, OBJECT))] for tip in grasp.tips]
    friction = [ROUGHNESS * float(min(pair.friction[:2])) for pair in chosen]
    load = (1 + SHAKEN) * GRAVITY * thing.mass
    return Hold(
        thing=thing,
        q0=grasp.q,
        contacts=tuple(f"{pair.second.name} on {pair.first.name}" for pair in chosen),
        friction=tuple(friction),
        min_force=_round(SQUEEZE * load / (len(chosen) * min(friction))),
    )


def _round(value: float) -> float:
    """Return a number with three digits."""
    return float(f"{value:.3g}")


def step_of_tips(model: mujoco.MjModel, hold: Hold) -> float:
    """Return the plant's step, s, that does not damp light fingers behind their contacts.

    Args:
        model: of the hand and the ball.
        hold: of them.
    """
    data, ends = mujoco.MjData(model), np.zeros(6)
    data.qpos[:] = hold.q0
    mujoco.mj_kinematics(model, data)
    ball, frames = frame_index(model, OBJECT, "geom"), []
    for name in hold.contacts:
        geom = frame_index(model, name.removesuffix(f" on {OBJECT}"), "geom")
        mujoco.mj_geomDistance(model, data, geom, ball, hold.thing.size, ends)
        body = int(model.geom_bodyid[geom])
        turned = data.xmat[body].reshape(3, 3)
        frames.append(ContactFrame(name, body, point=turned.T @ (ends[:3] - data.xpos[body])))
    return contact_step(model, hold.q0, frames, frame_index(model, OBJECT, "body"))
