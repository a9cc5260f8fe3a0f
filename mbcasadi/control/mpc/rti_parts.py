"""One interval of a real-time iteration: linearised, condensed, run forward and judged.

In deviations (ξ, υ) from the guess the subproblem of an interval is

    ξ⁺ = A ξ + B υ + d,   d = F(x, u) - x⁺,   cost = ½ |r + J_x ξ + J_u υ|²

so that Gauss-Newton's Hessian is `Q = J_xᵀ J_x, S = J_xᵀ J_u, R = J_uᵀ J_u`. What an interval needs
later is one column, `lin`; what a Riccati step gives is another, `gain`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.control.mpc.ocp import Array, OptimalControlProblem

UNROLLED = 20_000
"""Operations of one interval up to which its Jacobians are scalar code."""


class Parts(NamedTuple):
    """The Functions of one interval, N = horizon.

    `cost` is (P, p), (nx, nx + 1): the cost to go is ½ ξᵀ P ξ + pᵀ ξ.
    """

    linearise: ca.Function  # (x, u, p, x_next) → (lin)
    ending: ca.Function  # (x, p) → (cost)
    riccati: ca.Function  # (cost, lin) → (cost, gain)
    rows: ca.Function  # (X, lin, gain, place) → (X, rows transposed)
    motion: ca.Function  # (xi, w, lin, gain) → (xi, upsilon)
    adjoint: ca.Function  # (costate, lin, xi, upsilon, mu) → (costate, slope, size)


@dataclass(frozen=True)
class Bounds:
    """What is bounded in each interval: its controls, and some states at its end.

    Attributes:
        states: their places.
        choose: (ns, nx) takes them out of x.
        limits: (nu + ns, 2), infinite where there are none.
    """

    states: list[int]
    choose: ca.DM
    limits: Array

    @property
    def size(self) -> int:
        """Number of rows of an interval."""
        return int(self.limits.shape[0])


def bounds_of(ocp: OptimalControlProblem) -> Bounds:
    """Return the rows of an interval: all controls, and states with a finite bound."""
    states = np.flatnonzero(np.isfinite(ocp.x_bounds).any(axis=1)).tolist()
    limits = np.vstack([ocp.u_bounds, ocp.x_bounds[states]])
    return Bounds(states, ca.sparsify(ca.DM(np.eye(ocp.nx)[states])), limits)


def parts(ocp: OptimalControlProblem, bounded: Bounds) -> Parts:
    """Return the Functions of a problem."""
    nx, nu = ocp.nx, ocp.nu
    lin = {"A": (nx, nx), "B": (nx, nu), "Q": (nx, nx), "S": (nx, nu), "R": (nu, nu)}
    lin |= {"q": (nx, 1), "s": (nu, 1), "d": (nx, 1)}
    gain = {"U_inv": (nu, nu), "K": (nu, nx), "kappa": (nu, 1)}
    of_lin, of_gain = _column("lin", lin), _column("gain", gain)
    return Parts(
        linearise=_linearise(ocp),
        ending=_ending(ocp),
        riccati=_riccati(ocp, of_lin),
        rows=_rows(ocp, bounded, of_lin, of_gain),
        motion=_motion(ocp, of_lin, of_gain),
        adjoint=_adjoint(ocp, bounded, of_lin),
    )


class _Column(NamedTuple):
    whole: ca.SX
    parts: dict[str, ca.SX]


def _column(name: str, shapes: dict[str, tuple[int, int]]) -> _Column:
    whole = ca.SX.sym(name, sum(a * b for a, b in shapes.values()))
    ends = np.cumsum([0, *(a * b for a, b in shapes.values())]).tolist()
    flat: Any = ca.vertsplit(whole, ends)
    named = zip(shapes.items(), flat, strict=True)
    return _Column(whole, {key: ca.reshape(part, *shape) for (key, shape), part in named})


def _linearise(ocp: OptimalControlProblem) -> ca.Function:
    """Return both Jacobians; by x and u at once, which share what the dynamics factor."""
    nx, w = ocp.nx, ca.MX.sym("w", ocp.nx + ocp.nu)
    p, x_next = ca.MX.sym("p", ocp.np_), ca.MX.sym("x_next", nx)
    F, r = ocp.dynamics(w[:nx], w[nx:], p), ocp.residual(w[:nx], w[nx:], p)
    G, J = ca.jacobian(F, w), ca.jacobian(r, w)
    J_x, J_u = J[:, :nx], J[:, nx:]
    blocks = [G[:, :nx], G[:, nx:], J_x.T @ J_x, J_x.T @ J_u, J_u.T @ J_u]
    blocks += [J_x.T @ r, J_u.T @ r, F - x_next]
    column = ca.vertcat(*(ca.vec(ca.densify(block)) for block in blocks))
    at_w = ca.Function("linearise_w", [w, p, x_next], [column])
    x, u = ca.MX.sym("x", nx), ca.MX.sym("u", ocp.nu)
    column = at_w(ca.vertcat(x, u), p, x_next)
    return _small(ca.Function("linearise", [x, u, p, x_next], [column]))


def _ending(ocp: OptimalControlProblem) -> ca.Function:
    x, p = ca.MX.sym("x", ocp.nx), ca.MX.sym("p", ocp.np_)
    r = ocp.terminal(x, p)
    J = ca.jacobian(r, x)
    cost = ca.densify(ca.horzcat(J.T @ J, J.T @ r))
    return ca.Function("ending", [x, p], [cost])


def _small(function: ca.Function) -> ca.Function:
    """Return the Function in scalars where all it calls is scalar, and little."""
    inner = ca.Function.find_functions(function)
    if not all(one.is_a("SXFunction") or one.is_a("MXFunction") for one in inner):
        return function
    flat = function.expand()
    if flat.n_instructions() > UNROLLED:
        return function
    given: Any = flat.sx_in()
    return ca.Function(flat.name(), given, flat.call(given), {"cse": True})


def _riccati(ocp: OptimalControlProblem, of_lin: _Column) -> ca.Function:
    """Return one step back, in which the cost becomes ½ |w|² and a cost to go.

    w = U (υ + K ξ + κ),   Uᵀ U = R + Bᵀ P B
    """
    lin, nx = of_lin.parts, ocp.nx
    cost = ca.SX.sym("cost", nx, nx + 1)
    P, p = cost[:, :nx], cost[:, nx]
    PA, PB, g = P @ lin["A"], P @ lin["B"], P @ lin["d"] + p
    U = ca.chol(lin["R"] + lin["B"].T @ PB)
    U_inv = ca.densify(ca.solve(U, ca.SX.eye(ocp.nu)))
    half = U_inv.T @ (lin["S"].T + lin["B"].T @ PA)
    bent = U_inv.T @ (lin["s"] + lin["B"].T @ g)
    P_next = lin["Q"] + lin["A"].T @ PA - half.T @ half
    p_next = lin["q"] + lin["A"].T @ g - half.T @ bent
    gain = ca.vertcat(ca.vec(U_inv), ca.vec(U_inv @ half), U_inv @ bent)
    return _made("riccati", [cost, of_lin.whole], [ca.horzcat(P_next, p_next), gain])


def _rows(
    ocp: OptimalControlProblem, bounded: Bounds, of_lin: _Column, of_gain: _Column
) -> ca.Function:
    """Return how the rows of an interval depend on w of all, and the state at its end."""
    lin, gain, N = of_lin.parts, of_gain.parts, ocp.horizon
    X, place = ca.SX.sym("X", ocp.nx, N * ocp.nu), ca.SX.sym("place", N)
    upsilon = ca.kron(place.T, gain["U_inv"]) - gain["K"] @ X
    X_next = lin["A"] @ X + lin["B"] @ upsilon
    chosen = ca.vertcat(upsilon, bounded.choose @ X_next)
    return _made("rows", [X, of_lin.whole, of_gain.whole, place], [X_next, chosen.T])


def _motion(ocp: OptimalControlProblem, of_lin: _Column, of_gain: _Column) -> ca.Function:
    lin, gain = of_lin.parts, of_gain.parts
    xi, w = ca.SX.sym("xi", ocp.nx), ca.SX.sym("w", ocp.nu)
    upsilon = gain["U_inv"] @ w - gain["K"] @ xi - gain["kappa"]
    xi_next = lin["A"] @ xi + lin["B"] @ upsilon + lin["d"]
    return _made("motion", [xi, w, of_lin.whole, of_gain.whole], [xi_next, upsilon])


def _adjoint(ocp: OptimalControlProblem, bounded: Bounds, of_lin: _Column) -> ca.Function:
    """Return the gradient by υ, from the interval's own numbers, and the size of its parts.

    A unit of control counts as a part too: at rest all others vanish.
    """
    lin, nu = of_lin.parts, ocp.nu
    xi, upsilon = ca.SX.sym("xi", ocp.nx), ca.SX.sym("upsilon", ocp.nu)
    costate, mu = ca.SX.sym("costate", ocp.nx), ca.SX.sym("mu", bounded.size)
    pressed, total = mu[:nu, 0], costate + bounded.choose.T @ mu[nu:, 0]
    own = lin["s"] + lin["S"].T @ xi + lin["R"] @ upsilon
    later = lin["B"].T @ total
    size = ca.sumsqr(own) + ca.sumsqr(later) + ca.sumsqr(pressed) + ca.sumsqr(lin["R"])
    earlier = lin["q"] + lin["Q"] @ xi + lin["S"] @ upsilon + lin["A"].T @ total
    given = [costate, of_lin.whole, xi, upsilon, mu]
    return _made("adjoint", given, [earlier, own + later + pressed, size])


def _made(name: str, given: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    return ca.Function(name, given, [ca.densify(part) for part in outputs], {"cse": True})
