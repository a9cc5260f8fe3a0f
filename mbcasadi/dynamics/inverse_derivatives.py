"""Derivatives of inverse dynamics of a `System`: recursively of a tree, by AD of equations."""

from typing import NamedTuple

import casadi as ca

from mbcasadi import model
from mbcasadi.argument_kinds import checked
from mbcasadi.dynamics.terms import State, inertia_of_step, state_symbols
from mbcasadi.model import inverse_dynamics_derivatives as of_tree
from mbcasadi.system import System
from mbcasadi.system.parametric import takes_parameters


class Chart(NamedTuple):
    """Coordinates of a derivative by the configuration.

    Fields: `along` (nq, k) directions of dq, None for the coordinates of q themselves;
    `of_tangent` (nv, k) the same directions as tangent steps.
    """

    along: ca.SX | None
    of_tangent: ca.SX | None

    def jacobian(self, value: ca.SX, q: ca.SX) -> ca.SX:
        """Return the derivative of an expression of q."""
        J = ca.jacobian(value, q)
        return J if self.along is None else ca.sparsify(J @ self.along)

    def from_tangent(self, derivative: ca.SX) -> ca.SX:
        """Return a derivative along `q ⊕ dq` in these coordinates."""
        return derivative if self.of_tangent is None else ca.sparsify(derivative @ self.of_tangent)


def tangent_chart(system: System, q: ca.SX) -> Chart:
    """Return the chart of derivatives along `q ⊕ dq`."""
    return Chart(None if system.nq == system.nv else system.velocity_map(q), None)


def coordinate_chart(system: System, q: ca.SX) -> Chart:
    """Return the chart of derivatives by the coordinates of q.

    `dq/dt = N v` with orthogonal columns of N, and members of a tree do not depend on the lengths
    of quaternions: `∂F/∂q = T N⁺` of their tangent derivatives T.
    """
    if system.nq == system.nv:
        return Chart(None, None)
    N = system.velocity_map(q)
    return Chart(None, ca.sparsify(ca.diag(1 / ca.densify(ca.sum1(N**2).T)) @ N.T))


@checked
@takes_parameters
def inverse_dynamics_derivatives(system: System) -> ca.Function:
    """Return (q, v, a, [t]) → (dfdq, dfdv, dfda) of `f = M a + h - f_passive`.

    Derivatives with respect to q are tangent ones, (nv, nv): along `q ⊕ dq`. `dfda` is M.
    Of a system that was read from a model they follow the recursion of
    `model.derivative_recursion`.
    """
    state = state_symbols(system, ca.SX)
    a = ca.SX.sym("a", system.nv)
    by_q, by_v = force_derivatives(system, state, a, tangent_chart(system, state.q))
    inputs = {"q": state.q, "v": state.v, "a": a} | state.last
    outputs = {"dfdq": by_q, "dfdv": by_v, "dfda": system.mass_matrix(state.q)}
    return ca.Function(
        "inverse_dynamics_derivatives",
        list(inputs.values()),
        list(outputs.values()),
        list(inputs),
        list(outputs),
        {"cse": True},
    )


def force_derivatives(
    system: System, state: State[ca.SX], a: ca.SX, chart: Chart
) -> tuple[ca.SX, ca.SX]:
    """Return the derivatives of `M a + h - f_passive` by q in a chart, and by v.

    M has what forces at the end of a step add.

    Args:
        system: the mechanism.
        state: symbols of its inputs.
        a: (nv, 1) acceleration.
        chart: coordinates of the derivative by q.
    """
    q, v = state.q, state.v
    f_passive = system.passive_force(q, v) - inertia_of_step(system, state) @ a
    if system.tree is None:
        force = ca.cse(system.mass_matrix(q) @ a + system.bias_force(q, v) - f_passive)
        return chart.jacobian(force, q), ca.jacobian(force, v)
    system.require_available("mass_matrix", "bias_force")
    numbers = system.numbers_at(q)
    by_q, by_v = of_tree(numbers.tree, q, v, a, numbers.actuators)
    by_q = chart.from_tangent(by_q) - chart.jacobian(f_passive, q)
    if system.tree.constants and chart.of_tangent is not None:
        force = ca.cse(model.inverse_dynamics(numbers.tree, q, v, a, numbers.actuators))
        by_q += by_constants(force, q, system.tree.nq_of_joints)
    return ca.sparsify(by_q), ca.sparsify(by_v - ca.jacobian(f_passive, v))


def by_constants(value: ca.SX, q: ca.SX, first: int) -> ca.SX:
    """Return the derivative by the entries of q that never move, zero for the others.

    No tangent step moves them, so that a derivative along `q ⊕ dq` has no part along them.

    Args:
        value: expression of q.
        q: (nq,) symbols.
        first: index of the first of these entries.
    """
    behind = ca.SX(ca.jacobian(value, q[first:, 0]))
    return ca.horzcat(ca.SX(value.numel(), first), behind)
