"""Direct collocation: the same optimal control problem with the rates inside a step as unknowns.

    q_i = q ⊕ h Σ_j A_ij w_j,   v_i = v + h Σ_j A_ij a_j,
    w_i = rate of the local coordinates at v_i,   a_i = a(q_i, v_i, u),
    x⁺  = back onto the manifold from (q ⊕ h Σ b_i w_i, v + h Σ b_i a_i),

at the s points of Gauss, order 2 s. The method is implicit, so stiff motion permits long steps, at
the cost of `2 s nv` more unknowns a stage. The rates follow the controls, and their equations
follow the rows of the path: solvers of shooting problems accept the result.
"""

from dataclasses import replace

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.integrators.manifold_step import back_fun, force_fun
from mbcasadi.mpc.integrators.step_options import DEFAULT_DYNAMICS, DynamicsOptions
from mbcasadi.mpc.ocp.problem import STEP, Array, OptimalControlProblem
from mbcasadi.mpc.ocp.solution import OcpSolution, initial_guess
from mbcasadi.simulation.functions import chart_rate_fun
from mbcasadi.system import System

Method = tuple[Array, Array, Array]
"""A, b, c of a Runge-Kutta method."""

MOST_POINTS = 9
"""Largest number of Gauss points that CasADi tabulates."""


@checked
def direct_collocation(
    ocp: OptimalControlProblem,
    system: System,
    points: int = 2,
    newton: int = 2,
    dynamics: DynamicsOptions = DEFAULT_DYNAMICS,
) -> OptimalControlProblem:
    """Return the problem with Gauss collocation in place of its steps.

    Its controls are `(u, w_1, a_1, ..., w_s, a_s)`: the first `system.nu` columns of a solution
    are the controls of the mechanism.

    Args:
        ocp: made by `optimal_control_problem` of this system.
        system: the mechanism.
        points: s, number of points in an interval; the order is 2 s.
        newton: number of Newton steps back onto the manifold at the end of an interval.
        dynamics: how the acceleration is computed.

    Raises:
        ProblemError: an invalid number of points, a problem of another system, or rows
            that a mask switches: their impacts need the steps of shooting.
    """
    system = system.at()
    _check(ocp, system, points)
    x, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("p", ocp.np_)
    U = ca.MX.sym("u", system.nu + 2 * points * system.nv)
    u = U[: system.nu]
    clock = slot_slices(ocp.slots).get("t")
    length = ocp.period if ocp.lengths is None else p[slot_slices(ocp.slots)[STEP]]
    interval = CollocatedInterval(
        system, length, x, u, U[system.nu :], None if clock is None else p[clock]
    )
    defects = interval.defects(gauss(points), dynamics)
    x_next = interval.end(gauss(points), newton)
    zero = np.zeros((2 * points * system.nv, 2))
    free = np.tile([-np.inf, np.inf], (zero.shape[0], 1))
    if ocp.has_rates:
        x_next = ca.vertcat(x_next, u)
    return replace(
        ocp,
        dynamics=_fun("dynamics", (x, U, p), "x_next", x_next),
        residual=_fun("residual", (x, U, p), "r", ocp.residual(x, u, p)),
        path=_fun("path", (x, U, p), "g", ca.vertcat(ocp.path(x, u, p), *defects)),
        path_bounds=np.vstack([ocp.path_bounds, zero]),
        u_bounds=np.vstack([ocp.u_bounds, free]),
    )


class CollocatedInterval:
    """One interval: its start x, its control u, and the rates at its points."""

    def __init__(
        self, system: System, h: ca.MX | float, x: ca.MX, u: ca.MX, rates: ca.MX, t: ca.MX | None
    ) -> None:
        self.system, self.h, self.u, self.t = system, h, u, t
        self.q, self.v = x[: system.nq], x[system.nq : system.nq + system.nv]
        columns = ca.reshape(rates, 2 * system.nv, rates.numel() // (2 * system.nv))
        self.w, self.a = columns[: system.nv, :], columns[system.nv :, :]

    def defects(self, method: Method, dynamics: DynamicsOptions) -> list[ca.MX]:
        """Return `w_i - rate` and `a_i - a(q_i, v_i, u)` of each point."""
        system, (A, _, c) = self.system, method
        acceleration, force = dynamics.acceleration_fun(system), force_fun(system)
        chart = chart_rate_fun(system)
        defects = []
        for i, (weights, node) in enumerate(zip(A, c, strict=True)):
            q, v = self._state_after(weights)
            a = acceleration(q=q, v=v, f=force(q, v, self.u), **self._time(node))["a"]
            defects += [self.w[:, i] - chart(self.q, q, v), self.a[:, i] - a]
        return defects

    def end(self, method: Method, newton: int) -> ca.MX:
        """Return the state at the end, on the manifold."""
        q, v = self._state_after(method[1])
        if not (self.system.nc and newton):
            return ca.vertcat(q, v)
        projected = back_fun(self.system, newton)(q=q, v=v, **self._time(1.0))
        return ca.vertcat(projected["q_next"], projected["v_next"])

    def _state_after(self, weights: Array) -> tuple[ca.MX, ca.MX]:
        q = self.system.integrate(self.q, self.h * (self.w @ weights))
        return q, self.v + self.h * (self.a @ weights)

    def _time(self, c: float) -> dict[str, ca.MX]:
        return {} if self.t is None else {"t": self.t + c * self.h}


@checked
def collocation_guess(
    ocp: OptimalControlProblem, system: System, guess: OcpSolution
) -> OcpSolution:
    """Return a guess for a problem by direct collocation from one of a shooting problem.

    Args:
        ocp: the problem by direct collocation.
        system: the mechanism.
        guess: states and controls; the rates between two samples are taken as constant.
    """
    v, u = guess.x[:, system.nq : system.nq + system.nv], guess.u[:, : system.nu]
    count = (ocp.nu - system.nu) // (2 * system.nv)
    lengths = np.diff(ocp.times)[:, None]
    return initial_guess(ocp, guess.x, np.hstack([u, mean_rates(v, lengths, count)]))


def mean_rates(v: Array, h: Array | float, points: int) -> Array:
    """Return (N, 2 s nv) rates at the points of intervals, taken as constant.

    Args:
        v: (N + 1, nv) velocities at the samples.
        h: length of all intervals, or of each, (N, 1), s.
        points: s.
    """
    once = np.hstack([v[:-1], np.diff(v, axis=0) / h])
    return np.tile(once, (1, points))


def gauss(points: int) -> Method:
    """Return `A`, `b`, `c` of Gauss' method: integrals of the Lagrange polynomials of c."""
    c = np.array(ca.collocation_points(points, "legendre"))
    exponents = np.arange(1, points + 1)
    # Row j of `L` holds the coefficients of the polynomial that is one at c_j.
    L = np.linalg.inv(np.vander(c, increasing=True)).T
    A = (c[:, None] ** exponents / exponents) @ L.T
    return A, L @ (1 / exponents), c


def _fun(name: str, inputs: tuple[ca.MX, ...], output: str, value: ca.MX) -> ca.Function:
    return ca.Function(name, list(inputs), [value], ["x", "u", "p"], [output])


def _check(ocp: OptimalControlProblem, system: System, points: int) -> None:
    if not 1 <= points <= MOST_POINTS:
        raise ProblemError(f"points = {points}; expected 1 to {MOST_POINTS}")
    if (ocp.nx, ocp.nu) != (system.nq + system.nv + ocp.has_rates * system.nu, system.nu):
        raise ProblemError(
            f"the problem has {ocp.nx} states and {ocp.nu} controls; expected those of "
            f"'{system.name}', {system.nq + system.nv} and {system.nu}"
        )
    if system.mask is not None:
        raise ProblemError(
            f"rows of '{system.name}' are switched by a mask; expected a system without one, or "
            "the problem by shooting, whose steps start with the impact"
        )
