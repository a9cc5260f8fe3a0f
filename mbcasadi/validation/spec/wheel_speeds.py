"""How fast actuators turn the wheels of a base, and so its path may be."""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.anatomy import RobotDescription
from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.contacts.wheels import wheel_rows
from mbcasadi.description import RigidTree, Wheel
from mbcasadi.errors import ProblemError
from mbcasadi.system import System
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import require_ranges

Array = NDArray[np.float64]
UP = np.array([0.0, 0.0, 1.0])

FREQUENCY = 0.2
"""Hz, of a figure of eight, where the wheels turn that fast."""

RESERVE = 0.5
"""Share of the largest speed of the wheels that the path needs."""

SLOWER = 0.8
"""Each speed that is tried, of the one before; `TRIES` of them."""
TRIES = 20


@dataclass(frozen=True)
class WheelContact:
    """A wheel of the file.

    Attributes:
        body: that turns.
        joint: of the wheel.
        friction: Coulomb coefficient.
        wheel: its disc.
    """

    body: str
    joint: str
    friction: float
    wheel: Wheel


def tree_of(system: System) -> RigidTree:
    """Return the mechanism of a system that was read from a model."""
    assert system.tree is not None
    return system.tree


def path_frequency(
    robot: RobotDescription,
    system: System,
    q: Array,
    wheels: Sequence[WheelContact],
    track: float,
    speed: float | None,
) -> float:
    """Return at how many Hz the figure's fastest motion, ahead or turning, is one of the wheels.

    Args:
        robot, system: the base, and the system of its model.
        q: (nq,) in which it stands.
        wheels: that touch the ground.
        track: length of the figure, m.
        speed: the fastest on it, m/s, or None.

    Raises:
        ProblemError: at none, or not at this speed.
    """
    able = _force_ranges(system)
    _require_motors(robot, system, able, q, _rolling(robot, system, q, wheels, (1.0, 0.0)))
    first = FREQUENCY if speed is None else speed / fastest_of(track)
    for frequency in first * SLOWER ** np.arange(TRIES):
        fastest = fastest_of(track) * frequency / RESERVE
        motions = ((fastest, 0.0), (0.0, 2 * fastest / track))
        if all(_can(robot, system, able, q, wheels, motion) for motion in motions):
            if speed is None or frequency == first:
                return float(frequency)
            raise ProblemError(
                f"speed = {speed:g} m/s of '{robot.name}': its actuators turn the wheels for "
                f"{RESERVE * fastest:.2g} m/s, with half of their speed in reserve; expected at "
                "most that"
            )
    raise ProblemError(
        f"task 'drive' of '{robot.name}': its actuators do not turn the wheels against damping "
        f"and dry friction, even at {fastest:.3g} m/s; expected larger ranges of control or force"
    )


def fastest_of(length: float) -> float:
    """Return the largest speed, m/s, on a figure of eight of this length, m, at 1 Hz."""
    return float(np.sqrt(2) * np.pi * length)


def _force_ranges(system: System) -> ca.Function:
    """Return (q, v) → moment, lower, upper of the actuators, passive forces, and their bias."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    act = ca.SX(system.na, 1) if system.na else None
    at = actuator_model(system, require_ranges(system, None, None), 1.0, q, v, act)
    passive = system.passive_force(q, v)
    outputs = [at.moment, at.lower, at.upper, passive, at.bias]
    return ca.Function("ranges", [q, v], [ca.densify(x) for x in outputs])


def _require_motors(
    robot: RobotDescription, system: System, able: ca.Function, q: Array, v: Array
) -> None:
    """Raise `ProblemError` where servos turn the wheels: their force changes as wheels roll.

    A servo keeps the speed of a wheel that slips, so that slip does not end.
    """
    still, rolls = (np.array(able(q, each)[4]).ravel() for each in (0 * v, v))
    servos = [n for n, a, b in zip(system.actuator_names, still, rolls, strict=True) if a != b]
    if servos:
        raise ProblemError(
            f"task 'drive' of '{robot.name}': {', '.join(servos)} are servos, which keep wheels "
            "slipping that slip; expected motors"
        )


def _can(
    robot: RobotDescription,
    system: System,
    able: ca.Function,
    q: Array,
    wheels: Sequence[WheelContact],
    motion: tuple[float, float],
) -> bool:
    """Return whether actuators keep up a motion, (m/s, rad/s), against what resists the wheels."""
    import scipy.optimize

    places = {joint.name: joint.dof for joint in tree_of(system).joints}
    dofs = [places[each.joint] for each in wheels]
    v = _rolling(robot, system, q, wheels, motion)
    moment, lower, upper, passive, _ = (np.array(x) for x in able(q, v))
    losses = np.zeros(system.nv)
    for joint in tree_of(system).joints:
        if joint.name in places and joint.kind in ("hinge", "slide"):
            losses[joint.dof] = joint.friction_loss
    need = -passive.ravel() + losses * np.sign(v)
    ends = np.column_stack([lower.ravel(), upper.ravel()])
    bounds = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None) for a, b in ends]
    found = scipy.optimize.linprog(
        np.zeros(len(bounds)), A_eq=moment[dofs, :], b_eq=need[dofs], bounds=bounds
    )
    return bool(found.status == 0)


def _rolling(
    robot: RobotDescription,
    system: System,
    q: Array,
    wheels: Sequence[WheelContact],
    motion: tuple[float, float],
) -> Array:
    """Return v (nv,) of a base that moves ahead, m/s, and turns, rad/s, as its wheels roll."""
    tree = tree_of(system)
    free = next(joint for joint in tree.joints if joint.kind == "free")
    dofs = [joint.dof for each in wheels for joint in tree.joints if joint.name == each.joint]
    v, axes = np.zeros(system.nv), ca.DM(contact_axes(UP))
    R = np.array(system.frame(robot.base_body, "body").pose(q)[1])
    v[free.dof : free.dof + 3] = motion[0] * np.append(robot.ahead, 0.0)
    v[free.dof + 3 : free.dof + 6] = R.T @ (motion[1] * UP)
    state = ca.SX(ca.DM(q)), ca.SX(ca.DM(v))
    frames = [system.frame(each.body, "body") for each in wheels]
    J = np.vstack(
        [
            np.array(ca.evalf(wheel_rows(frame, each.wheel, axes, state).J))
            for frame, each in zip(frames, wheels, strict=True)
        ]
    )
    v[dofs] = np.linalg.lstsq(J[:, dofs], -J @ v, rcond=None)[0]
    return v
