"""Servos in the equations of one tick.

The unknown p stays the force at the start of the tick, `p = g u + b`: ranges of controls and forces
are its bounds. With the mean force of `servo_map.py` the mean acceleration a follows from

    (M + B K₂ Bᵀ) a = f + B (K₁ l̇ - K₂ Ḃᵀ v) + B p + Gᵀ lam,

and the force at the end of the tick is `p - K₃ α - K₄ l̇`, `α = Bᵀ a + Ḃᵀ v`: rows of the QP where
the force has a range. A step of MuJoCo holds B: of n steps a tick the first does without Ḃ.

With a delay of d ticks p belongs to the tick that begins d ticks after the measurement. The bias
there is that of the length and the speed which follow from the controls that act until then: from
a start at (l, l̇) the acceleration is `β - by_length l - by_rate l̇`, and z remembers β of each of
these ticks, beside the acceleration that was planned. A measurement that is not where the plan led
corrects the plan by at most half of it and what gravity would do: a sensor that stays where it was
would otherwise add to the commands of the ticks to come without end. After a tick without a
solution the servo is taken to move on as it does.
"""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.condensed_dynamics import Condensed
from mbcasadi.control.inverse_dynamics.parts.servo_stability import require_stable
from mbcasadi.control.inverse_dynamics.parts.servos import Servos, servo_note
from mbcasadi.control.limits.actuator_ranges import JointSums, actuator_row, joint_sums
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Outcome, Part, Values
from mbcasadi.linalg import product
from mbcasadi.model.transmission import actuator_length, moment_row
from mbcasadi.qp.rows import Row, Rows, Sizes
from mbcasadi.qp.whitening import shift_bounds
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel
from mbcasadi.system.ranges import Ranges, finite

NAME = "servos"

CORRECTED = 0.5
"""Share of a planned acceleration by which a measurement may correct it."""

END_OF_TICK = "forces at the end of the tick"
"""Kind of these rows."""


@dataclass(frozen=True)
class ServoState:
    """The servos at one state, k of them.

    Attributes:
        moment: (nv, k) B of the servos.
        length, rate: (k,) l and l̇ at the start of the tick in which p acts.
        drift: (k,) `Ḃᵀ v`.
        ahead: (nu,) change of length and of speed from the measurement to this start; None
            without delay.
        memory: (d (2 k + 1),) of each tick β, the planned accelerations, then 1 where it had a
            solution; oldest first.
    """

    moment: ca.SX
    length: ca.SX
    rate: ca.SX
    drift: ca.SX
    ahead: tuple[ca.SX, ca.SX] | None
    memory: ca.SX


@final
@dataclass(frozen=True, eq=False)
class ServoMotion(Part):
    """What servos do during a tick.

    Attributes:
        servos: of the controller.
    """

    servos: Servos

    def bind(self, design: Design) -> Bound:
        """Return the servos' inertia, the rows of their forces and what they remember.

        Raises:
            ProblemError: a servo whose loop with a task is unstable.
        """
        servos, system, ranges = self.servos, design.system, design.ranges
        require_stable(design, servos)
        has_rows = servos.plant.rule != "start"

        def state(now: Instant) -> Instant:
            at = servo_state(system, servos, (now.q, now.v), now.memory.get(NAME, ca.SX(0, 1)))
            return replace(now, ahead=at.ahead).knowing(NAME, at)

        def forces(now: Instant) -> Instant:
            at, added = now.known[NAME], servos.column("added_inertia")
            slowed = servos.plant.turning * added * at.drift
            push = at.moment @ (servos.column("drift") * at.rate - slowed)
            return replace(now.pushed(push), M=now.M + at.moment @ ca.diag(added) @ at.moment.T)

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            limits = joint_sums(system, forces_alone(now.actuators, ranges))
            return [end_rows(servos, now.known[NAME], limits, sizes)]

        def carry(now: Instant) -> Values:
            names = ("moment", "drift", "length", "rate", "memory")
            return {name: getattr(now.known[NAME], name) for name in names}

        def moved(known: Values, a: ca.SX, _: ca.SX) -> Values:
            return {"acceleration": product(known["moment"].T, a) + known["drift"]}

        remembers = bool(servos.memory_names)
        return Bound(
            NAME,
            memory=servos.memory_names,
            notes={"servos": servo_note(servos.plant)},
            state=state,
            forces=forces if has_rows else None,
            rows=rows if has_rows else None,
            carry=carry if remembers else None,
            moved=moved if remembers else None,
            remember=(lambda tick: next_memory(servos, tick)) if remembers else None,
        )


def servo_state(
    system: System, servos: Servos, state: tuple[ca.SX, ca.SX], memory: ca.SX
) -> ServoState:
    """Return the servos at a state.

    Args:
        system: read from a model.
        servos: of the controller.
        state: q, v as they were measured.
        memory: see `ServoState`.
    """
    k, places = len(servos.actuators), list(servos.actuators)
    moment, drift, start = _kinematics(system, servos)(*state)
    moment = ca.sparsify(moment)
    length, rate = start, moment.T @ state[1]
    first = length, rate
    for tick in range(servos.plant.delay):
        of_tick = memory[tick * (2 * k + 1) : (tick + 1) * (2 * k + 1)]
        beta, planned, commanded = of_tick[:k], of_tick[k : 2 * k], of_tick[2 * k]
        expected = _corrected(servos, planned, acceleration_from(servos, beta, (length, rate)))
        a = ca.if_else(commanded > 0, expected, 0)
        length = length + servos.column("length_by_acceleration") * a
        length = length + servos.column("length_by_rate") * rate
        rate = rate + servos.plant.period * a
    ahead = None
    if servos.plant.delay:
        change = ca.SX(system.nu, 2)
        change[places, :] = ca.horzcat(length - first[0], rate - first[1])
        ahead = change[:, 0], change[:, 1]
    return ServoState(moment, length, rate, drift, ahead, memory)


def acceleration_from(servos: Servos, beta: ca.SX, start: tuple[ca.SX, ca.SX]) -> ca.SX:
    """Return the mean acceleration (k,) of a tick that begins at a length and a speed.

    Args:
        servos: of the controller.
        beta: (k,) that at length and speed zero.
        start: length and speed (k,).
    """
    return beta - servos.column("by_length") * start[0] - servos.column("by_rate") * start[1]


def _corrected(servos: Servos, planned: ca.SX, measured: ca.SX) -> ca.SX:
    """Return the measured acceleration (k,), no further from the plan than `CORRECTED`.

    None at all is as near: a joint that is as fast already as the plan makes it.
    """
    most = CORRECTED * ca.fabs(planned) + ca.DM(servos.usual_accelerations)
    return ca.fmin(ca.fmax(measured, ca.fmin(planned - most, 0)), ca.fmax(planned + most, 0))


def _kinematics(system: System, servos: Servos) -> ca.Function:
    """Return (q, v) → (B, Ḃᵀ v, l) of the servos."""
    tree = system.tree
    assert tree is not None
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    actuators = [system.actuators[i] for i in servos.actuators]
    B = ca.sparsify(ca.vertcat(*(moment_row(tree, each, q) for each in actuators)).T)
    drift = ca.jtimes(B.T @ v, q, system.velocity_map(q) @ v)
    lengths = ca.vertcat(*(actuator_length(tree, each, q) for each in actuators))
    return ca.Function("servo_kinematics", [q, v], [B, ca.densify(drift), lengths])


def force_at_end(servos: Servos, at: ServoState, nu: int) -> tuple[ca.SX, ca.SX]:
    """Return C_a (nu, nv), shift (nu,): the force at the end of the tick is `p + C_a a + shift`."""
    by_a = servos.damping * servos.plant.period
    by_a += servos.stiffness * servos.column("length_by_acceleration")
    by_rate = servos.stiffness * servos.column("length_by_rate")
    places = list(servos.actuators)
    C_a, shift = ca.SX(nu, at.moment.shape[0]), ca.SX(nu, 1)
    C_a[places, :] = -ca.diag(by_a) @ at.moment.T
    shift[places] = -by_a * at.drift - by_rate * at.rate
    return C_a, shift


def forces_alone(actuators: ActuatorModel, ranges: Ranges) -> ActuatorModel:
    """Return the actuators with the ranges of their forces alone, not those of their controls."""
    bounded = np.any(np.isfinite(ranges.force), axis=1)
    return replace(
        actuators,
        lower=finite(ranges.force[:, 0]),
        upper=finite(ranges.force[:, 1]),
        bounded=tuple(bool(x) for x in bounded),
    )


def end_rows(
    servos: Servos, at: ServoState, limits: tuple[ActuatorModel, JointSums], sizes: Sizes
) -> Rows:
    """Return the ranges of forces at the end of the tick, of actuators and of sums.

    Args:
        servos, at: of the controller.
        limits: ranges of the forces, those of the controls left out, and of sums.
        sizes: of the unknowns.
    """
    actuators, sums = limits
    C_a, shift = force_at_end(servos, at, sizes.nu)
    kept = [i for i in servos.actuators if actuators.bounded[i]]
    moved = [k for k, of_p in enumerate(ca.vertsplit(sums.of_p)) if _acts(of_p, servos)]
    of_p = ca.vertcat(ca.SX.eye(sizes.nu)[kept, :], sums.of_p[moved, :])
    ends = [
        ca.vertcat(own[kept, 0], sums.ranges[moved, side])
        for side, own in enumerate((actuators.lower, actuators.upper))
    ]
    about = [_at_end(actuator_row(servos.names[i])) for i in kept]
    about += [_at_end(sums.about[k]) for k in moved]
    lower, upper = (shift_bounds(end, of_p @ shift) for end in ends)
    of_a = ca.sparsify(of_p @ C_a)
    return sizes.rows(about, lower, upper, C_p=ca.sparsify(of_p), C_a=of_a)


def _at_end(row: Row) -> Row:
    """Return what a range at the end of the tick is."""
    later, what = " at the end of the tick", row.name.partition(": ")[2]
    limit = f"{what}{later} of {row.owner[1]}"
    return row._replace(name=row.name + later, limit=limit, kind=END_OF_TICK, may_yield=True)


def _acts(of_p: ca.SX, servos: Servos) -> bool:
    """Return whether a sum (1, nu) holds the force of a servo."""
    return bool(set(ca.sparsify(of_p).sparsity().get_col()) & set(servos.actuators))


def next_memory(servos: Servos, tick: Outcome) -> ca.SX:
    """Return what z remembers: what acts in the next tick and those until this command does."""
    known, zero = tick.known, ca.SX(0)
    start = -known["length"], -known["rate"]
    beta = acceleration_from(servos, known["acceleration"], start)
    latest = ca.if_else(tick.solved, ca.vertcat(beta, known["acceleration"], 1), zero)
    return ca.vertcat(known["memory"][2 * len(servos.actuators) + 1 :, 0], latest)


def reachable(rows: Rows, condensed: Condensed, actuators: ActuatorModel) -> Rows:
    """Return rows whose bounds at the end of the tick admit a force within the range at its start.

    Forces at the end of a tick depend on what else acts on the mechanism: a range that nothing can
    keep would leave no solution, where the plant merely clips the force.

    Args:
        rows: the inequalities.
        condensed: the motion by the forces.
        actuators: their ranges at the start of the tick.
    """
    places = rows.places(END_OF_TICK)
    if not places:
        return rows
    p = ca.fmin(ca.fmax(0, actuators.lower), actuators.upper)
    C_p, C_a = rows.C_p[places, :], rows.C_a[places, :]
    value = product(C_p, p) + product(C_a, condensed.acceleration(p))
    lower, upper = type(p)(rows.lower), type(p)(rows.upper)
    lower[places] = ca.fmin(lower[places], value)
    upper[places] = ca.fmax(upper[places], value)
    return replace(rows, lower=lower, upper=upper)
