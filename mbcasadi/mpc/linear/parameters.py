"""The inputs of a control step of linear MPC: parameters θ of its problem, and past controls.

    θ = (x_0, r, s, u_last),   x_0 <- A x_0 + B u + drift for each pending control u

Each form of the problem uses them. A measured or reference entry that is NaN or huge counts as bad
input, and θ is zero.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.linear.interface import Interface, ProblemInputs
from mbcasadi.mpc.linear.prediction import parameters_of
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.qp.input_guard import LARGEST_INPUT, clamp


def problem_inputs(
    interface: Interface, kind: type[Sym], own_state: int
) -> tuple[dict[str, Sym], ProblemInputs[Sym]]:
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
    sound = ca.sum1(ca.fabs(given)) <= LARGEST_INPUT
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
    valid = ca.sum1(ca.fabs(column)) <= LARGEST_INPUT
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
