"""The inputs of a control step of linear MPC: parameters θ of its problem, and past controls.

    θ = (x_0, r, s, u_{-1}),   x_0 <- A x_0 + B u + drift for each pending control u, over a delay

Each form of the problem uses them. A measured or reference entry that is NaN or huge counts as bad
input, and θ is zero.
"""

import itertools
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.interface import Interface, ProblemInputs
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import clamp, is_bounded


@dataclass(frozen=True)
class Parameters:
    """The slices of θ."""

    x0: slice
    r: slice
    s: slice
    last: slice
    size: int


def parameters_of(problem: LinearProblem) -> Parameters:
    """Return the slices of θ: x_0, r (one or N states), s, u_{-1} (where rates enter)."""
    nx, nu = problem.model.nx, problem.model.nu
    sizes = [
        nx,
        nx * (problem.horizon if problem.preview else 1),
        nu,
        nu if problem.has_rates else 0,
    ]
    ends = np.cumsum([0, *sizes]).tolist()
    x0, r, s, last = (slice(a, b) for a, b in itertools.pairwise(ends))
    return Parameters(x0, r, s, last, ends[-1])


def problem_inputs(
    interface: Interface, kind: type[Sym], own_state: int
) -> tuple[dict[str, Sym], ProblemInputs]:
    """Return symbols of a controller's inputs, and the problem's inputs.

    x0 is infinite, which counts as bad input, where any measured or reference entry is bad, read or
    not.

    Args:
        interface: names and sizes of the measurement.
        kind: of the symbols.
        own_state: number of entries of z before those of the interface and the safe output.
    """
    sizes = {signal.name: len(signal.components) for signal in interface.measured}
    sizes["ref"] = sum(slot.size for slot in interface.slots)
    behind = own_state + len(interface.estimates)
    sizes["z"] = behind + interface.hold.safe.size
    symbols = {name: kind.sym(name, size) for name, size in sizes.items()}
    inputs = interface.inputs(symbols, symbols["z"][own_state:behind, 0])
    given = ca.vertcat(*(part for name, part in symbols.items() if name != "z"))
    sound = ca.logic_and(is_bounded(given), interface.is_measured(symbols))
    return symbols, replace(inputs, x0=ca.if_else(sound, inputs.x0, np.inf))


def parameters(problem: LinearProblem, x0: Sym, ref: Sym, past: Sym) -> tuple[Sym, Sym]:
    """Return θ, zero where inputs are bad, and one where they are good.

    x0 is predicted over the delay with the pending controls, the oldest first.

    Args:
        problem: the problem.
        x0: (nx,) measured state.
        ref: the reference, r then s.
        past: pending controls and those whose change enters, the newest last.
    """
    model, places = problem.model, parameters_of(problem)
    column = ca.vertcat(x0, ref, past)
    valid = is_bounded(column)
    safe = ca.if_else(valid, column, ca.DM.zeros(column.shape[0]))
    past = safe[places.s.stop :, 0]
    x = safe[: model.nx, 0]
    for k in range(problem.delay):
        A, B, drift = (ca.DM(part) for part in model.interval(0))
        x = A @ x + B @ past[k * model.nu : (k + 1) * model.nu, 0] + drift
    last = past[past.shape[0] - model.nu * problem.has_rates :, 0]
    return ca.vertcat(x, safe[model.nx : places.s.stop, 0], last), valid


def past_controls_size(problem: LinearProblem) -> int:
    """Return the number of entries of z that hold past controls."""
    return problem.past_controls * problem.model.nu


def next_past_controls(problem: LinearProblem, past: Sym, u: Sym) -> Sym:
    """Return the stored controls of the next step, finite whatever the past holds."""
    past = clamp(past, *np.tile(problem.u_bounds, (problem.past_controls, 1)).T)
    return ca.vertcat(past, u)[problem.model.nu :, 0] if problem.past_controls else u[:0, 0]


def acting_control(problem: LinearProblem, past: Sym, u: Sym) -> Sym:
    """Return the control that acts until the next sample: with a delay the oldest pending one."""
    return clamp(past[: problem.model.nu, 0], *problem.u_bounds.T) if problem.delay else u


def parameters_fun(problem: LinearProblem, interface: Interface, rows: int) -> ca.Function:
    """Return (inputs) → (θ) of a controller.

    Args:
        problem: whose parameters θ are.
        interface: of the controller.
        rows: entries of z before the past controls.
    """
    own_state = rows + past_controls_size(problem)
    symbols, inputs = problem_inputs(interface, ca.MX, own_state)
    theta, _ = parameters(problem, inputs.x0, inputs.ref, symbols["z"][rows:own_state, 0])
    return ca.Function("parameters", list(symbols.values()), [theta], list(symbols), ["theta"])
