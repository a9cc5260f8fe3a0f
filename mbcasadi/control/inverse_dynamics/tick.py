"""The stages of one control step, split where the QP solver is called: build, solve, finish.

`build` assembles the problem, condenses and whitens it; `finish` recovers the actuator forces,
clips them to their ranges, computes the residuals and chooses the output. Both are scalar
expressions (SX): a fixed sequence of operations, without branches or loops that depend on data.
"""

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.carry import Layout, pack, unpack
from mbcasadi.control.inverse_dynamics.condensed_dynamics import (
    LEAST_PIVOT,
    Condensed,
    Dynamics,
    multipliers,
)
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem, condensed_problem
from mbcasadi.control.inverse_dynamics.fallback import (
    offered_hold,
    offered_output,
    safe_output_of,
)
from mbcasadi.control.inverse_dynamics.inequalities import Rows
from mbcasadi.control.inverse_dynamics.inputs import input_symbols, state_size
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.residuals import (
    RESIDUALS,
    Allowance,
    Candidate,
    Cost,
    residuals,
)
from mbcasadi.control.inverse_dynamics.scaling import ProblemScales
from mbcasadi.control.safe_output.safe_output import SafeOutput
from mbcasadi.description.qp_stages import UNBOUNDED, LeastDistanceStages
from mbcasadi.description.status import OUTPUTS, Flag, Status
from mbcasadi.linalg import solve_upper
from mbcasadi.qp.input_guard import active_signs, is_saturated
from mbcasadi.qp.kkt_residuals import QP_RESIDUALS, judge, length
from mbcasadi.qp.whitening import LeastDistance, Whitened, shift_bounds
from mbcasadi.system.actuator_model import ActuatorModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stages:
    """The stages, and the sizes that follow from them.

    Attributes:
        qp: `build` and `finish`.
        row_names: name of each inequality.
        u_min, u_max: (nu,) limits that the control never leaves.
        nw: number of internal forces.
        scales: the units of the problem.
        safe: the output of a tick without a solution.
        finish_from_carry: (carry, x, lam_a, active, flag) → the controller's outputs, for a
            controller that is a part of another one; None where the safe output reads inputs.
    """

    qp: LeastDistanceStages
    row_names: tuple[str, ...]
    u_min: Array
    u_max: Array
    nw: int
    scales: ProblemScales
    safe: SafeOutput
    finish_from_carry: ca.Function | None


def make_stages(setup: Setup) -> Stages:
    """Return the build and finish Functions of a controller."""
    symbols = input_symbols(setup, 0)
    qp = condensed_problem(setup, symbols)
    problem, m = qp.problem, len(qp.problem.rows.names)
    z = ca.SX.sym("z", state_size(setup, m))
    symbols["z"] = z
    A_qp, lba, uba = least_distance(setup, qp)
    hold = offered_hold(setup, qp)
    offered = hold if setup.safe_output_kind == "safe" else {}
    carry, layout = pack(_values_of_finish(setup, qp) | offered)
    build = ca.Function(
        "build",
        list(symbols.values()),
        [A_qp, lba, uba, active_signs(z[:m, 0]), carry],
        list(symbols),
        ["A_qp", "lba", "uba", "active0", "carry"],
        {"cse": True},
    )
    limits = control_limits(setup, problem)
    safe = safe_output_of(setup, symbols, hold, _no_force(problem.actuators), limits)
    finish = _finish(setup, qp, layout, symbols, safe)
    reads_inputs = safe.kind != "zero"
    return Stages(
        qp=LeastDistanceStages(build, finish),
        row_names=problem.rows.names,
        u_min=limits[0],
        u_max=limits[1],
        nw=problem.contacts.of_w.shape[1],
        scales=qp.scales,
        safe=safe,
        finish_from_carry=None if reads_inputs else _finish(setup, qp, layout, {}, safe),
    )


def least_distance(setup: Setup, qp: CondensedProblem) -> LeastDistance:
    """Return the inequalities over the whitened unknown, as a least-distance problem."""
    nu, rows = setup.system.nu, qp.problem.rows
    condensed, whitened = qp.condensed, qp.whitened
    in_p, in_w = whitened.L_inv[:nu, :], whitened.L_inv[nu:, :]
    of_lam = -solve_upper(condensed.R, condensed.R_inv_diag, condensed.Y_B @ in_p)
    A = rows.C_p @ in_p + rows.C_lam @ of_lam + rows.C_w @ in_w
    p_0, w_0 = whitened.y_0[:nu, 0], whitened.y_0[nu:, 0]
    at_0 = rows.value(p_0, multipliers(condensed, p_0), w_0)
    lba, uba = shift_bounds(rows.lower, at_0), shift_bounds(rows.upper, at_0)
    return LeastDistance(ca.densify(A), lba, uba)


def control_limits(setup: Setup, problem: Problem) -> tuple[Array, Array]:
    """Return constant limits (nu,) of the control: its own, and its force's by a constant gain."""
    lower, upper = (setup.ranges.ctrl[:, side].copy() for side in (0, 1))
    actuators = problem.actuators
    for i in range(setup.system.nu):
        constant = actuators.gain[i].is_constant() and actuators.bias[i].is_zero()
        stateful = bool(setup.system.actuators) and setup.system.actuators[i].act is not None
        if stateful or not constant or float(actuators.gain[i]) == 0.0:
            continue
        low, high = actuators.lower[i], actuators.upper[i]
        if low.is_constant() and high.is_constant():
            ends = sorted(float(end) / float(actuators.gain[i]) for end in (low, high))
            lower[i] = max(lower[i], ends[0]) if abs(float(low)) < UNBOUNDED else lower[i]
            upper[i] = min(upper[i], ends[1]) if abs(float(high)) < UNBOUNDED else upper[i]
    return lower, upper


def _values_of_finish(setup: Setup, qp: CondensedProblem) -> dict[str, ca.SX]:
    """Return everything that `finish` needs, by name."""
    problem = qp.problem
    actuators, rows, tasks = problem.actuators, problem.rows, problem.tasks
    size = ca.DM(setup.system.scales.coordinates)
    error = tasks.J @ qp.condensed.t + tasks.offset
    return {
        **{f"dynamics.{key}": value for key, value in problem.dynamics._asdict().items()},
        **{f"condensed.{key}": value for key, value in qp.condensed._asdict().items()},
        **{f"whitened.{key}": value for key, value in qp.whitened._asdict().items()},
        **{key: getattr(rows, key) for key in ("C_p", "C_lam", "C_w", "lower", "upper")},
        **{key: getattr(actuators, key) for key in ("gain", "bias", "act")},
        "p_min": actuators.lower,
        "p_max": actuators.upper,
        "J": tasks.J,
        "offset": tasks.offset,
        "p_ref": problem.p_ref,
        "f_ref": problem.f_ref,
        "of_lam": problem.contacts.of_lam,
        "of_w": problem.contacts.of_w,
        "size": length(ca.sqrt(tasks.weight) * error),
        "rate": setup.contact_damping + length(problem.v / size),
        "valid": qp.valid,
        "measured": qp.inputs.accepted,
        "clipped": qp.clipped,
    }


def _finish(
    setup: Setup,
    qp: CondensedProblem,
    layout: Layout,
    inputs: dict[str, ca.SX],
    safe: SafeOutput,
) -> ca.Function:
    """Return the stage behind the solver; `inputs` are what the safe output may read."""
    problem = qp.problem
    nu, m, nw = setup.system.nu, len(problem.rows.names), problem.contacts.of_w.shape[1]
    solver = {
        "x": ca.SX.sym("x", nu + nw),
        "lam_a": ca.SX.sym("lam_a", m),
        "active": ca.SX.sym("active", m),
        "flag": ca.SX.sym("flag"),
    }
    carry = ca.SX.sym("carry", layout.size)
    known = unpack(layout, carry)
    whitened = Whitened(*(known[f"whitened.{key}"] for key in Whitened._fields))
    condensed = Condensed(*(known[f"condensed.{key}"] for key in Condensed._fields))
    y = whitened.y_0 + whitened.L_inv @ solver["x"]
    p = ca.fmin(ca.fmax(y[:nu, 0], known["p_min"]), known["p_max"])
    residual = residuals(
        Candidate(p, y[nu:, 0], solver["lam_a"], solver["x"]),
        Dynamics(*(known[f"dynamics.{key}"] for key in Dynamics._fields)),
        condensed,
        whitened,
        Rows(
            C_p=known["C_p"],
            C_lam=known["C_lam"],
            C_w=known["C_w"],
            lower=known["lower"],
            upper=known["upper"],
            names=problem.rows.names,
        ),
        _cost(setup, qp, known),
        qp.scales,
        Allowance(setup.rank_tol, known["rate"], setup.tolerance),
    )
    small = {name: residual[i] <= setup.tolerance for i, name in enumerate(RESIDUALS)}
    status = judge(
        residual[len(RESIDUALS) - len(QP_RESIDUALS) :, 0],
        flag=solver["flag"],
        valid=known["valid"],
        tolerance=setup.tolerance,
        consistent=ca.logic_and(
            condensed.definite >= LEAST_PIVOT,
            ca.logic_and(small["dynamics"], small["constraint"]),
        ),
    )
    optimal = status <= int(Status.SUBOPTIMAL)
    no_force = _no_force(_actuators(problem, known))
    offered, measured = offered_output(setup, known, inputs, no_force)
    memory = inputs["z"][m:, 0] if safe.size else ca.SX(0, 1)
    u_solved = _actuators(problem, known).controls(p)
    u_free, u, remembered = safe.step(memory, offered, measured, optimal, u_solved)
    clipped = ca.logic_and(known["valid"], known["clipped"])
    flags = Flag.SATURATED * is_saturated(u_free, u) + Flag.CLIPPED * clipped
    active = optimal * active_signs(solver["active"])
    z_next = ca.vertcat(active, remembered)
    return ca.Function(
        "finish",
        [*inputs.values(), carry, *solver.values()],
        [u, z_next, status, flags, ca.if_else(known["valid"], residual, np.inf)],
        [*inputs, "carry", *solver],
        list(OUTPUTS),
        {"cse": True},
    )


def _actuators(problem: Problem, known: dict[str, ca.SX]) -> ActuatorModel:
    """Return the actuators of carried numbers."""
    return replace(
        problem.actuators,
        gain=known["gain"],
        bias=known["bias"],
        act=known["act"],
        lower=known["p_min"],
        upper=known["p_max"],
    )


def _no_force(actuators: ActuatorModel) -> ca.SX:
    """Return the control (nu,) of zero actuator force within its limits."""
    return actuators.controls(ca.fmin(ca.fmax(ca.SX(0), actuators.lower), actuators.upper))


def _cost(setup: Setup, qp: CondensedProblem, known: dict[str, ca.SX]) -> Cost:
    keys = ("J", "offset", "p_ref", "of_lam", "of_w", "f_ref", "size")
    return Cost(
        weight=qp.problem.tasks.weight,
        weights=qp.weights,
        force_weight=setup.force_weight,
        **{key: known[key] for key in keys},
    )
