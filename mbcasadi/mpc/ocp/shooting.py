"""Multiple shooting: an `OptimalControlProblem` as a nonlinear program, stage by stage.

Unknowns  w = (x_0, u_0, e_0, x_1, ..., x_N, e_N),
rows      g = (gap_0, x_0 - x0, rows_0; gap_1, rows_1; ...; rows_N),

    gap_k = x_{k+1} - F(x_k, u_k, p_k),   rows_k = T g_k + W e_k  (see `constraints`),

in this order and with this sign, as structured solvers require. The initial state
is a row, so that every stage has the same unknowns.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from mbcasadi.mpc.ocp.constraints import RowSet, end_rows, first_path_rows, path_rows
from mbcasadi.mpc.ocp.problem import Array, OptimalControlProblem
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class Shooting:
    """The program.

    Attributes:
        ocp: the problem.
        w, parameters: unknowns; x0, then p_0, ..., p_N.
        f, g, residual: cost, rows, and the residual that the cost is half the square of.
        w_bounds, g_bounds: (n, 2), (m, 2).
    """

    ocp: OptimalControlProblem
    w: ca.MX
    parameters: ca.MX
    f: ca.MX
    g: ca.MX
    residual: ca.MX
    w_bounds: Array
    g_bounds: Array

    @property
    def program(self) -> dict[str, ca.MX]:
        """The program for `ca.nlpsol`."""
        return {"x": self.w, "p": self.parameters, "f": self.f, "g": self.g}

    def gauss_newton(self, upper: bool = False) -> ca.Function:
        """Return (x, p, lam_f, lam_g) → (hess_gamma_x_x): `Jᵀ J` of the residual.

        IPOPT requires its upper triangle.
        """
        J = ca.jacobian(self.residual, self.w)
        H = ca.triu(J.T @ J) if upper else J.T @ J
        lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", self.g.shape[0])
        return ca.Function(
            "gauss_newton",
            [self.w, self.parameters, lam_f, lam_g],
            [lam_f * H],
            ["x", "p", "lam_f", "lam_g"],
            ["hess_gamma_x_x"],
        )

    def first_order(self) -> ca.Function:
        """Return (w, p) → (f, f_w, g, g_w), from which the residuals are computed."""
        outputs = [self.f, ca.gradient(self.f, self.w), self.g, ca.jacobian(self.g, self.w)]
        return ca.Function("first_order", [self.w, self.parameters], outputs)

    def pack(self, x: Array, u: Array, p: Array) -> Array:
        """Return w of states (N + 1, nx) and controls (N, nu), with the slacks that they need."""
        along, at_end = values_of(self.ocp, x, u, p)
        e, e_end = path_rows(self.ocp).least_slacks(along), end_rows(self.ocp).least_slacks(at_end)
        return np.concatenate([np.hstack([x[:-1], u, e]).ravel(), x[-1], e_end.ravel()])

    def unpack(self, w: Array) -> tuple[Array, Array]:
        """Return x (N + 1, nx) and u (N, nu)."""
        ocp = self.ocp
        size = ocp.nx + ocp.nu + path_rows(ocp).k
        stages = w[: ocp.horizon * size].reshape(ocp.horizon, size)
        last = w[ocp.horizon * size :][: ocp.nx]
        return np.vstack([stages[:, : ocp.nx], last]), stages[:, ocp.nx : ocp.nx + ocp.nu].copy()

    def structure(self) -> dict[str, str | int | list[int]]:
        """Return sizes of the stages, for structured solvers."""
        ocp, N = self.ocp, self.ocp.horizon
        rows, last = path_rows(ocp), end_rows(ocp)
        ng = [rows.m] * N + [last.m]
        ng[0] += ocp.nx
        sizes = {"nx": [ocp.nx] * (N + 1), "nu": [ocp.nu + rows.k] * N + [last.k], "ng": ng}
        return {"structure_detection": "manual", "N": N, **sizes}


def shooting(ocp: OptimalControlProblem) -> Shooting:
    """Return the program; Functions of stages are mapped over the horizon."""
    N, nx, nu = ocp.horizon, ocp.nx, ocp.nu
    rows, last = path_rows(ocp), end_rows(ocp)
    size = nx + nu + rows.k
    w = ca.MX.sym("w", N * size + nx + last.k)
    parameters = ca.MX.sym("p", nx + (N + 1) * ocp.np_)
    P = ca.reshape(parameters[nx:], ocp.np_, N + 1)
    stages = ca.reshape(w[: N * size], size, N)
    x_N, e_N = w[N * size : N * size + nx], w[N * size + nx :]
    X, U, E = ca.horzcat(stages[:nx, :], x_N), stages[nx : nx + nu, :], stages[nx + nu :, :]
    stage_inputs = (X[:, :N], U, P[:, :N])
    gaps = X[:, 1:] - ocp.dynamics.map(N)(*stage_inputs)
    path = _rows_of(rows, ocp.path.map(N)(*stage_inputs), E)
    g = ca.vertcat(
        gaps[:, 0],
        X[:, 0] - parameters[:nx],
        path[:, 0],
        ca.vec(ca.vertcat(gaps, path)[:, 1:]),
        _rows_of(last, ocp.end(x_N, P[:, N]), e_N),
    )
    residuals = [ca.vec(ocp.residual.map(N)(*stage_inputs)), ocp.terminal(x_N, P[:, N])]
    residuals += [
        ca.vec(_price(row_kind)[0] @ e) for row_kind, e in ((rows, E), (last, e_N)) if row_kind.k
    ]
    linear = [
        ca.sum2(_price(row_kind)[1] @ e) for row_kind, e in ((rows, E), (last, e_N)) if row_kind.k
    ]
    residual = ca.vertcat(*residuals)
    return Shooting(
        ocp=ocp,
        w=w,
        parameters=parameters,
        f=ca.sumsqr(residual) / 2 + sum(linear, ca.MX(0)),
        g=g,
        residual=residual,
        w_bounds=_w_bounds(ocp),
        g_bounds=_g_bounds(ocp),
    )


def values_of(ocp: OptimalControlProblem, x: Array, u: Array, p: Array) -> tuple[Array, Array]:
    """Return the bounded values: along the path (N, ng), and at the end (ne,).

    Args:
        ocp: the problem.
        x, u, p: (N + 1, nx), (N, nu), (N + 1, np).
    """
    along = ocp.path.map(ocp.horizon)(x[:-1].T, u.T, p[:-1].T).full().T
    return along, ocp.end(x[-1], p[-1]).full().ravel()


def _rows_of(rows: RowSet, values: ca.MX, e: ca.MX) -> ca.MX:
    """Return `T y + W e`; without slacks, y itself."""
    if not rows.k:
        return values
    return ca.sparsify(ca.DM(rows.T)) @ values + ca.sparsify(ca.DM(rows.W)) @ e


def _price(rows: RowSet) -> tuple[ca.DM, ca.DM]:
    """Return `√ρ₂` as a diagonal matrix and `ρ₁` as a row."""
    return ca.diag(ca.DM(np.sqrt(rows.quadratic))), ca.DM(rows.linear).T


def _w_bounds(ocp: OptimalControlProblem) -> Array:
    """Return bounds of w; those of the state hold from the second sample on."""
    free = np.tile([-np.inf, np.inf], (ocp.nx, 1))
    stage = np.vstack([ocp.u_bounds, path_rows(ocp).e_bounds, ocp.x_bounds])
    return np.vstack([free, np.tile(stage, (ocp.horizon, 1)), end_rows(ocp).e_bounds])


def _g_bounds(ocp: OptimalControlProblem) -> Array:
    zero, first, along = np.zeros((ocp.nx, 2)), first_path_rows(ocp).bounds, path_rows(ocp).bounds
    later = np.tile(np.vstack([zero, along]), (ocp.horizon - 1, 1))
    return np.vstack([zero, zero, first, later, end_rows(ocp).bounds])
