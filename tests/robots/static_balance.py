"""The least share of its torques with which a robot stays at rest on some of its feet.

    min s + w |r|   over q, p, F, lam, r:
    |c h(q) - f_passive(q) - B p - Aᵀ lam - Σ Jᵀ F - c m g r| ≤ dry friction,   |p| ≤ s p_max,

feet that stand flat where they were with F in their cones, the centre of pressure of each within
some share of its sole; joints and servo targets in their ranges, other feet clear of the ground; c
says how much heavier the robot is than its model. With r = 0 the ranges let it rest; otherwise,
with a large w, |r| is how far its centre of mass stays beside its feet. Where s > 1, or r is not
zero, at the best pose that several starts find, actuators or ranges exclude the task.
"""

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.contacts.friction_cone import pyramid_rows
from mbcasadi.contacts.groups import ContactGroup, contact_groups_of
from mbcasadi.mpc.legged.from_system import trunk_joint
from mbcasadi.mpc.whole_body.default_cost import largest_forces
from mbcasadi.system import System, evaluate
from mbcasadi.system.actuator_model import actuator_model
from mbcasadi.system.ranges import Ranges
from robots.ground import Array
from robots.whole_body.trials import Walker

GIVES = 1e-3  # m and rad, of feet that stand: two flat ones may hold a direction twice
STILL = 0.01  # rad, of joints that hardly move, whose couplings may not hold in the first pose
CLEAR = 0.03  # m, of a foot that does not stand
APART = 0.8  # of the distance between the feet across, that a foot in the air keeps
MISSING = 100.0  # 1/m, cost beside that of the torques
STARTS, SPREAD = 4, 0.15  # and how far they are from the first pose, rad
SETTINGS = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "ipopt.max_iter": 500}


class Balance(NamedTuple):
    """The best pose found: its share s of the torques and who needs it, what is missing, m."""

    share: float
    missing: float
    q: Array
    at_most: tuple[str, ...]


class _Rows(NamedTuple):
    """Constraints `lower ≤ value ≤ upper`, one after the other."""

    value: list[ca.SX]
    lower: list[Array]
    upper: list[Array]

    def add(self, value: ca.SX, lower: float, upper: float) -> None:
        value = ca.vec(ca.SX(value))
        self.value.append(value)
        self.lower.append(np.full(value.numel(), lower))
        self.upper.append(np.full(value.numel(), upper))


def static_balance(
    robot: Walker,
    stands: Sequence[int],
    *,
    heavier: float = 1.1,
    lower: float = 0.0,
    near: float = 1e-3,
    inner: float = 1.0,
    shifted: bool = False,
) -> Balance | None:
    """Return the rest that takes the least share of the torques, or None where none was found.

    Args:
        robot: and its first pose, on all of its feet.
        stands: numbers of the feet that stand.
        heavier: mass over that of the model.
        lower: by which the base is lower than in the first pose, at least, m.
        near: cost of a motion from the first pose, 1/rad², beside that of the torques.
        inner: share of a sole, about its middle, in which the centre of pressure is.
        shifted: whether the pose is the first one with its base shifted: joints beside the legs
            are where they were, and the other feet too, without a load.
    """
    system, rng = robot.system, np.random.default_rng(0)
    feet = contact_groups_of(system, robot.feet)
    on = [foot for k, foot in enumerate(feet) if k in stands]
    forces = ca.SX.sym("F", 3, sum(len(foot.members) for foot in on))
    move, p = ca.SX.sym("move", system.nv), ca.SX.sym("p", system.nu)
    lam, s, r = ca.SX.sym("lam", system.nc), ca.SX.sym("s"), ca.SX.sym("r", 2)
    q, rows = ca.SX(system.integrate(robot.q0, move)), _Rows([], [], [])
    _add_balance(rows, robot, on, (q, p, lam, forces, r), heavier)
    for foot, F in zip(on, ca.horzsplit(forces, _ends(on)), strict=True):
        least = (1 - inner) / len(foot.members) * ca.sum2(F[2, :])
        rows.add(F[2, :] - least, 0.0, np.inf)
    _add_ranges(rows, robot, (q, p, s))
    _add_feet(rows, robot, feet, range(len(feet)) if shifted else stands, q)
    if shifted:
        rows.add(move[_beside_legs(robot)], -STILL, STILL)
    rows.add(q[2] - (robot.q0[2] - lower), -np.inf, 0.0 if lower else np.inf)
    beside = ca.SX.sym("beside", 2)
    rows.add(beside - r, 0.0, np.inf)
    rows.add(beside + r, 0.0, np.inf)
    x = ca.vertcat(move, p, lam, ca.vec(forces), r, beside, s)
    cost = s + MISSING * ca.sum1(beside) + near * ca.sumsqr(move)
    nlp = {"x": x, "f": cost, "g": ca.vertcat(*rows.value)}
    solver = ca.nlpsol("balance", "ipopt", nlp, SETTINGS)
    bounds = {"lbg": np.concatenate(rows.lower), "ubg": np.concatenate(rows.upper)}
    best, least = None, np.inf
    for k in range(STARTS):
        x0 = np.zeros(x.numel())
        x0[6 : system.nv] = SPREAD * (k > 0) * rng.standard_normal(system.nv - 6)
        x0[-1] = 1.0
        answer = solver(x0=x0, **bounds)
        values = np.array(answer["x"]).ravel()
        if solver.stats()["success"] and float(answer["f"]) < least:
            best, least = _balance(robot, values), float(answer["f"])
    return best


def _beside_legs(robot: Walker) -> list[int]:
    """Return the coordinates, beside the base's, that move no foot."""
    of_feet = [robot.system.frame(foot.frame, foot.kind) for foot in robot.feet]
    moves = np.vstack([frame.jacobian(robot.q0).full() for frame in of_feet])
    still: list[int] = np.flatnonzero(~moves.any(axis=0)).tolist()
    return still


def _ends(on: Sequence[ContactGroup]) -> list[int]:
    """Return where the forces of each foot begin and end."""
    ends: list[int] = np.cumsum([0, *(len(foot.members) for foot in on)]).tolist()
    return ends


def _balance(robot: Walker, values: Array) -> Balance:
    """Return the pose of a solution."""
    system = robot.system
    p = values[system.nv : system.nv + system.nu]
    shares = np.abs(p) / largest_forces(system, robot.q0, np.inf)
    most = np.flatnonzero(shares > 0.99 * values[-1])
    q = np.array(system.integrate(robot.q0, values[: system.nv])).ravel()
    names = tuple(system.actuator_names[i] for i in most)
    return Balance(float(values[-1]), float(np.abs(values[-3:-1]).sum()), q, names)


def _add_balance(
    rows: _Rows,
    robot: Walker,
    on: Sequence[ContactGroup],
    unknowns: tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX],
    heavier: float,
) -> None:
    """Add the balance of forces, per unit of the weight, and the cones."""
    system, (q, p, lam, forces, r) = robot.system, unknowns
    weight, still = 9.81 * robot.mass, ca.SX(system.nv, 1)
    load = heavier * system.bias_force(q, still) - system.passive_force(q, still)
    load -= _actuators(system, q).moment @ p
    dof = trunk_joint(system).dof + 3
    load[dof : dof + 2] -= heavier * weight * r
    place, cone = 0, pyramid_rows(robot.feet[0].friction, 8)
    for foot in on:
        for i in foot.members:
            contact, F = robot.feet[i], forces[:, place]
            J = ca.SX(system.frame(contact.frame, contact.kind).jacobian(q))[:3, :]
            load -= J.T @ (weight * F)
            rows.add(cone @ ca.vertcat(F[2], F[0], F[1]), -np.inf, 0.0)
            rows.add(F[2], 0.0, np.inf)
            place += 1
    if system.nc:
        at = {"q": q, "v": still, "t": ca.SX(0)}
        load -= evaluate(system.loop_jacobian, at).T @ lam
        rows.add(system.constraint(q), 0.0, 0.0)
    losses = np.zeros(system.nv)
    for joint in system.tree.joints:
        losses[joint.dof] = joint.friction_loss
    rows.value.append(load / weight)
    rows.lower.append(-losses / weight)
    rows.upper.append(losses / weight)


def _add_ranges(rows: _Rows, robot: Walker, unknowns: tuple[ca.SX, ca.SX, ca.SX]) -> None:
    """Add ranges of torques, scaled by s, of joints, and of servo targets."""
    system, (q, p, s) = robot.system, unknowns
    limits, tree, actuators = system.limits, system.tree, _actuators(robot.system, q)
    largest = largest_forces(system, robot.q0, np.inf)
    limited = np.flatnonzero(np.isfinite(largest)).tolist()
    rows.add(p[limited] / largest[limited] - s, -np.inf, 0.0)
    rows.add(-p[limited] / largest[limited] - s, -np.inf, 0.0)
    places = {joint.name: joint.qpos for joint in tree.joints}
    for name, (low, high) in zip(limits.joint_names, limits.joint, strict=True):
        rows.add(q[places[name]], low, high)
    for i, (low, high) in enumerate(limits.ctrl):
        if actuators.bias[i].is_zero() or not np.isfinite([low, high]).all():
            continue
        rows.add(p[i] - actuators.bias[i] - low * actuators.gain[i], 0.0, np.inf)
        rows.add(p[i] - actuators.bias[i] - high * actuators.gain[i], -np.inf, 0.0)


def _add_feet(
    rows: _Rows, robot: Walker, feet: Sequence[ContactGroup], stands: Sequence[int], q: ca.SX
) -> None:
    """Add that feet stand where they stood, and the others are in the air beside them."""
    system = robot.system
    places = [np.array(foot.frame.pose(robot.q0)[0]).ravel() for foot in feet]
    for k, foot in enumerate(feet):
        place, R = foot.frame.pose(q)[:2]
        if k in stands:
            turn = np.array(foot.frame.pose(robot.q0)[1]).T @ ca.SX(R)
            rows.add(place - places[k], -GIVES, GIVES)
            if len(foot.members) > 1:
                rows.add(ca.inv_skew(turn - turn.T) / 2, -GIVES, GIVES)
            continue
        side = np.sign(places[k][1] - places[stands[0]][1])
        apart = side * (place[1] - places[stands[0]][1])
        rows.add(apart, APART * abs(places[k][1] - places[stands[0]][1]), np.inf)
        for i in foot.members:
            frame = system.frame(robot.feet[i].frame, robot.feet[i].kind)
            rows.add(ca.SX(frame.pose(q)[0])[2], CLEAR, np.inf)


def _actuators(system: System, q: ca.SX) -> object:
    """Return the actuators at rest."""
    ranges = Ranges(system.limits.ctrl, system.limits.force)
    return actuator_model(system, ranges, 1.0, q, ca.SX(system.nv, 1), None)
