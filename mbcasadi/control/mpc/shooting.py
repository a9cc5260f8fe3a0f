"""Multiple shooting: an `OptimalControlProblem` as a nonlinear program with its stages in a row.

Unknowns  w = (x_0, u_0, x_1, ..., x_N), rows  g = (gap_0, x_0 - x0, g_0; gap_1, g_1; ...; g_N),

    gap_k = x_{k+1} - F(x_k, u_k, p_k),

in this order and with this sign, which solvers that know the structure ask for. The initial state
is a row, so that every stage has the same unknowns.
"""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbcasadi.control.mpc.ocp import Array, OptimalControlProblem


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
        """The program as `ca.nlpsol` takes it."""
        return {"x": self.w, "p": self.parameters, "f": self.f, "g": self.g}

    def gauss_newton(self) -> ca.Function:
        """Return (x, p, lam_f, lam_g) → (hess_gamma_x_x): `Jᵀ J` of the residual."""
        J = ca.jacobian(self.residual, self.w)
        lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", self.g.shape[0])
        return ca.Function(
            "gauss_newton",
            [self.w, self.parameters, lam_f, lam_g],
            [lam_f * (J.T @ J)],
            ["x", "p", "lam_f", "lam_g"],
            ["hess_gamma_x_x"],
        )

    def first_order(self) -> ca.Function:
        """Return (w, p) → (f, f_w, g, g_w), what an answer is examined by."""
        outputs = [self.f, ca.gradient(self.f, self.w), self.g, ca.jacobian(self.g, self.w)]
        return ca.Function("first_order", [self.w, self.parameters], outputs)

    def packed(self, x: Array, u: Array) -> Array:
        """Return w of states (N + 1, nx) and controls (N, nu)."""
        return np.concatenate([np.hstack([x[:-1], u]).ravel(), x[-1]])

    def unpacked(self, w: Array) -> tuple[Array, Array]:
        """Return x (N + 1, nx) and u (N, nu)."""
        ocp = self.ocp
        stages = w[: -ocp.nx].reshape(ocp.horizon, ocp.nx + ocp.nu)
        return np.vstack([stages[:, : ocp.nx], w[-ocp.nx :]]), stages[:, ocp.nx :].copy()

    def structure(self) -> dict[str, Any]:
        """Return sizes of the stages, as structured solvers ask for them."""
        ocp, N = self.ocp, self.ocp.horizon
        ng = [ocp.path_bounds.shape[0]] * N + [ocp.end_bounds.shape[0]]
        ng[0] += ocp.nx
        sizes = {"nx": [ocp.nx] * (N + 1), "nu": [ocp.nu] * N + [0], "ng": ng}
        return {"structure_detection": "manual", "N": N, **sizes}


def shooting(ocp: OptimalControlProblem) -> Shooting:
    """Return the program; Functions of stages are mapped over the horizon."""
    N, nx, nu = ocp.horizon, ocp.nx, ocp.nu
    w = ca.MX.sym("w", N * (nx + nu) + nx)
    parameters = ca.MX.sym("p", nx + (N + 1) * ocp.np_)
    P = ca.reshape(parameters[nx:], ocp.np_, N + 1)
    stages = ca.reshape(w[: N * (nx + nu)], nx + nu, N)
    last = w[N * (nx + nu) :]
    X, U = ca.horzcat(stages[:nx, :], last), stages[nx:, :]
    now = (X[:, :N], U, P[:, :N])
    gaps = X[:, 1:] - ocp.dynamics.map(N)(*now)
    rows = ocp.path.map(N)(*now)
    g = ca.vertcat(
        gaps[:, 0],
        X[:, 0] - parameters[:nx],
        rows[:, 0],
        ca.vec(ca.vertcat(gaps, rows)[:, 1:]),
        ocp.end(last, P[:, N]),
    )
    residual = ca.vertcat(ca.vec(ocp.residual.map(N)(*now)), ocp.terminal(last, P[:, N]))
    return Shooting(
        ocp=ocp,
        w=w,
        parameters=parameters,
        f=ca.sumsqr(residual) / 2,
        g=g,
        residual=residual,
        w_bounds=_w_bounds(ocp),
        g_bounds=_g_bounds(ocp),
    )


def _w_bounds(ocp: OptimalControlProblem) -> Array:
    """Return bounds of w; those of the state count from the second sample on."""
    free = np.tile([-np.inf, np.inf], (ocp.nx, 1))
    later = np.tile(np.vstack([ocp.u_bounds, ocp.x_bounds]), (ocp.horizon, 1))
    return np.vstack([free, later])


def _g_bounds(ocp: OptimalControlProblem) -> Array:
    closed = np.zeros((ocp.nx, 2))
    later = np.tile(np.vstack([closed, ocp.path_bounds]), (ocp.horizon - 1, 1))
    return np.vstack([closed, closed, ocp.path_bounds, later, ocp.end_bounds])
