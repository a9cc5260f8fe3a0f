"""A mechanism near an equilibrium: its linear model in deviations, and its interface.

    x = from_dq δq + from_dv δv,   x_next = A x + B δu          of one period

Constraints restrict x to the free directions of the manifold: there are no rows left for them. The
controller measures (q, v, [act]) and returns u.
"""

from collections.abc import Mapping
from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.control.law_interface.signals import deviations
from mbcasadi.control.regulators.controllability import require_stabilisable
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.feedback import require_continuous, setpoint_slots
from mbcasadi.control.regulators.innovation_gate import wrap_angles
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.regulators.lqr import manifold_weights, require_equilibrium
from mbcasadi.control.safe_output.mechanism_hold import hold_of_mechanism
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import ReportedLimits, Signal
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.interface import Expression, Interface, ProblemInputs, limits_of
from mbcasadi.mpc.linear.model import Array, LinearModel, check_outputs
from mbcasadi.mpc.linear.problem import LinearOptions, LinearProblem, linear_problem
from mbcasadi.qp.input_guard import is_bounded, state_validity
from mbcasadi.shapes import bounds
from mbcasadi.system.coordinates import controls, coordinates, rates, state_sizes, unitless_signal
from mbcasadi.system.pulling_inputs import activation_names

PERIOD = 1e-2
"""Sample time of a mechanism's MPC by default, s."""


def deviation_problem(linear: Linearization, options: LinearOptions) -> LinearProblem:
    """Return the problem of a mechanism on its constraint manifold, in deviations x and δu.

    Args:
        linear: from `linearize` at an equilibrium.
        options: with weights and rows of (δq, δv), and limits of u.

    Raises:
        ProblemError: no equilibrium; a mask or constraints that move; limits that do
            not hold the equilibrium; an uncontrollable growing mode.
        ShapeError: a wrong shape, or NaN.
    """
    require_continuous(linear)
    require_equilibrium(linear)
    system = linear.system
    if system.mask is not None or system.timed:
        raise ProblemError(
            f"'{system.name}' has a mask or constraints that move; a linear MPC has "
            "one fixed model: linearise a system without them"
        )
    u_limits = control_limits(linear, options)
    _require_holding_control(linear, u_limits)
    if options.P is None:
        require_stabilisable(linear)
    sampled = discretize(linear, period_of(options))
    on_manifold = manifold_weights(linear, options.Q, options.R)
    T = np.vstack([linear.to_dq, linear.to_dv])
    rows = check_outputs(options.outputs, 2 * system.nv, system.nu)
    return linear_problem(
        LinearModel.of(sampled.dfdx, sampled.dfdu, period_of(options)),
        replace(
            options,
            Q=on_manifold.Q,
            R=on_manifold.R,
            u_bounds=u_limits - linear.u[:, None],
            outputs=tuple(replace(output, C=output.C @ T) for output in rows),
        ),
    )


def period_of(options: LinearOptions) -> float:
    """Return the sample time of a mechanism's MPC."""
    return PERIOD if options.period is None else options.period


def control_limits(linear: Linearization, options: LinearOptions) -> Array:
    """Return limits of u (nu, 2): those of the options, or of the model."""
    chosen = linear.system.limits.ctrl if options.u_bounds is None else options.u_bounds
    return bounds("u_bounds", chosen, linear.system.nu)


def mechanism_interface(
    linear: Linearization, problem: LinearProblem, u_limits: Array, wrap: tuple[int, ...] = ()
) -> Interface:
    """Return the interface that measures (q, v); x, r and s are deviations from the equilibrium.

    Args:
        linear: the linear system and its equilibrium.
        problem: in deviations.
        u_limits: (nu, 2) limits of u.
        wrap: rows of q whose sensor knows an angle up to 2 π; needs an estimate.
    """
    system, q_slot, v_slot, u_slot = linear.system, *setpoint_slots(linear.system)
    measured = [coordinates(system), rates(system)]
    plan_rows = tuple(f"{part.name}.{row}" for part in measured for row in part.components)
    if system.na:
        measured.append(unitless_signal("act", activation_names(system)))
    slots: tuple[Slot, ...] = (q_slot, v_slot, u_slot)
    if problem.preview:
        samples = range(1, problem.horizon + 1)
        pairs = (("q", q_slot), ("v", v_slot))
        stages = [replace(slot, name=f"{part}{k}") for k in samples for part, slot in pairs]
        slots = (*stages, u_slot)

    def inputs(symbols: Mapping[str, Expression], estimate: Expression) -> ProblemInputs:
        q = _near(linear, symbols["q"], estimate, wrap)
        x = _deviation(linear, q, symbols["v"], symbols.get("act"))
        return ProblemInputs(x, _reference(linear, symbols["ref"]), estimate)

    def is_measured(symbols: Mapping[str, Expression]) -> Expression:
        valid = state_validity((symbols["q"], symbols["v"]), state_sizes(system))
        return ca.logic_and(valid, is_bounded(symbols["act"])) if system.na else valid

    def send(u: Expression) -> Expression:
        low, high = ca.DM(u_limits[:, 0]), ca.DM(u_limits[:, 1])
        return ca.fmin(ca.fmax(u + ca.DM(linear.u), low), high)

    def plan(x: ca.MX, u: ca.MX) -> tuple[ca.MX, ca.MX]:
        count = x.shape[1]
        q_0 = ca.repmat(ca.DM(linear.q), 1, count)
        q = system.integrate.map(count)(q_0, ca.DM(linear.to_dq) @ x)
        v = ca.repmat(ca.DM(linear.v), 1, count) + ca.DM(linear.to_dv) @ x
        return ca.vertcat(q, v), ca.repmat(ca.DM(linear.u), 1, u.shape[1]) + u

    names, units = zip(*deviations(system), strict=True)
    return Interface(
        measured=tuple(measured),
        slots=slots,
        control=controls(system),
        u_limits=u_limits,
        plan_rows=plan_rows,
        hold=hold_of_mechanism(system, problem.u_bounds, problem.model.period, linear.u, linear.q),
        inputs=inputs,
        is_measured=is_measured,
        send=send,
        plan=plan,
        limits=_limits(linear, problem),
        rest=linear,
        described={
            "source": system.name,
            "monitor": _monitor(linear, sum(slot.size for slot in slots)),
            "monitors": tuple(Signal(name, names, units) for name in ("target", "error")),
        },
    )


def _near(
    linear: Linearization, q: Expression, estimate: Expression, wrap: tuple[int, ...]
) -> Expression:
    """Return q, with angles that wrap brought within π of their estimate."""
    if not wrap:
        return q
    dq = ca.DM(linear.to_dq) @ estimate[: linear.nx, 0]
    expected = linear.system.integrate(ca.DM(linear.q), dq)
    apart, rows = wrap_angles(q - expected, wrap), ca.vertsplit(q)
    for row in wrap:
        rows[row] = expected[row] + apart[row]
    return ca.vertcat(*rows)


def _deviation(
    linear: Linearization, q: Expression, v: Expression, act: Expression | None = None
) -> Expression:
    """Return x (nx, 1); activations at the equilibrium where none are given."""
    dq = linear.system.difference(ca.DM(linear.q), q)
    x = ca.DM(linear.from_dq) @ dq + ca.DM(linear.from_dv) @ (v - ca.DM(linear.v))
    return x if act is None else x + ca.DM(linear.from_dact) @ (act - ca.DM(linear.act))


def _reference(linear: Linearization, ref: Expression) -> Expression:
    """Return the states of all samples, then the control, as deviations."""
    nq, nv, nu = linear.system.nq, linear.system.nv, linear.nu
    samples = (ref.numel() - nu) // (nq + nv)
    states = [
        _deviation(linear, part[:nq, 0], part[nq:, 0])
        for part in ca.vertsplit(ref[: samples * (nq + nv), 0], nq + nv)
    ]
    return ca.vertcat(*states, ref[samples * (nq + nv) :, 0] - ca.DM(linear.u))


def _monitor(linear: Linearization, size: int) -> ca.Function:
    """Return (q, ref) → (target, error): the first setpoint and the difference to it."""
    system = linear.system
    q, ref = ca.SX.sym("q", system.nq), ca.SX.sym("ref", size)
    desired = ref[: system.nq, 0]
    target = system.difference(ca.DM(linear.q), desired)
    outputs = [target, system.difference(q, desired)]
    return ca.Function("monitor", [q, ref], outputs, ["q", "ref"], ["target", "error"])


def _limits(linear: Linearization, problem: LinearProblem) -> ReportedLimits | None:
    """Return rates and outputs over (q, v, [act], u, u_last)."""
    limits, system = limits_of(problem), linear.system
    if limits is None:
        return None
    sizes = {"q": system.nq, "v": system.nv} | ({"act": system.na} if system.na else {})
    sizes |= {"u": system.nu, "u_last": system.nu}
    inputs = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    x = _deviation(linear, inputs["q"], inputs["v"], inputs.get("act"))
    u, last = (inputs[name] - ca.DM(linear.u) for name in ("u", "u_last"))
    outputs = [limits.value(x, u, last)]
    value = ca.Function("limits", list(inputs.values()), outputs, list(inputs), ["value"])
    return replace(limits, value=value)


def _require_holding_control(linear: Linearization, u_limits: Array) -> None:
    low, high = u_limits.T
    beyond = np.flatnonzero((linear.u < low) | (linear.u > high))
    if beyond.size:
        i = beyond[0]
        raise ProblemError(
            f"'{linear.system.name}' is held by {linear.system.actuator_names[i]} = "
            f"{linear.u[i]:.4g}, outside u_bounds {low[i]:g} to {high[i]:g}; expected limits "
            "that hold the equilibrium: see equilibrium() for another one"
        )
