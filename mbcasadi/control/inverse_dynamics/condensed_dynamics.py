"""Constrained dynamics as an affine map of the actuator forces.

From `M a = f + B p + Gᵀ lam` and `G a + c = 0` follow

    a = T p + t,   lam = -(E p + e),

whatever the rank of G: with `M = Lᵀ L` and `X = L⁻ᵀ Gᵀ = Y R` (columns of Y orthonormal, those
of dependent rows zero) the projector in the mass metric is `I - Y Yᵀ`, and `F = L⁻¹ Y` gives

    T = M⁻¹ B - F Fᵀ B,   E = R⁻¹ Fᵀ B,   t = M⁻¹ f - F y_0,   e = R⁻¹ y_0,   y_0 = Fᵀ f + R⁻ᵀ c.

Dependent rows get a zero multiplier. Nothing here inverts `G M⁻¹ Gᵀ`.

Where M is singular (a massless coordinate, Euler parameters) it is replaced by `M + s V Vᵀ`, with
V from the active bilateral rows, and f by `f + s V Vᵀ a`, which these rows determine: the motion
is the same, and `M + s V Vᵀ` is definite where M is definite on null(A). See `singular_inertia.py`.
"""

from typing import Any, NamedTuple

import casadi as ca

from mbcasadi import linalg
from mbcasadi.description.tolerance import tolerance
from mbcasadi.linalg.loops import MOST_ROWS, loop_function, padded
from mbcasadi.linalg.scalars import in_scalars, scalar_function
from mbcasadi.qp.kkt_residuals import length
from mbcasadi.system.actuator_model import direct_drives


class Dynamics(NamedTuple):
    """`M a = f + B p + Gᵀ lam`, `G a + c = 0`.

    Attributes:
        M: (nv, nv) inertia.
        f: (nv,) all forces that depend on neither p nor lam.
        B: (nv, np) moments of the actuator forces p.
        G: (m, nv) active constraint rows; rows that are switched off are zero.
        c: (m,) their bias.
    """

    M: ca.SX
    f: ca.SX
    B: ca.SX
    G: ca.SX
    c: ca.SX


class Condensed(NamedTuple):
    """What is left when `a` and `lam` are eliminated.

    Attributes:
        T, t: `a = T p + t`, (nv, np) and (nv,).
        E, e: `lam = -(E p + e)`, (m, np) and (m,).
        kept: (m,) one for kept rows, zero for dependent, vanishing or inactive ones.
        a_ref: size `(aᵀ M a)^½` of the accelerations that forces and constraints require.
        slip: size `(vᵀ M v)^½` of the part of v across the kept rows.
        definite: least share of a pivot of M that is left by those before it; NaN or below
            `LEAST_PIVOT` where M is not definite.
    """

    T: ca.SX
    t: ca.SX
    E: ca.SX
    e: ca.SX
    kept: ca.SX
    a_ref: ca.SX
    slip: ca.SX
    definite: ca.SX

    def acceleration(self, p: ca.SX) -> ca.SX:
        """Return a (nv,)."""
        return linalg.product(self.T, p) + self.t

    def multipliers(self, p: ca.SX) -> ca.SX:
        """Return lam (m,)."""
        return -(linalg.product(self.E, p) + self.e)


LEAST_PIVOT = tolerance(1e-11)
"""A pivot of M below this share of its diagonal entry is rounding: M is not definite."""


class Rooted(NamedTuple):
    """The dynamics in the coordinates `L a`, `M = Lᵀ L`, in which the inertia is the identity.

    Attributes:
        L: (nv, nv) lower triangular.
        X: (m, nv) the rows `G L⁻¹`.
        Z: (np, nv) `Bᵀ L⁻¹`.
        fall: (nv,) `M⁻¹ f`, the acceleration of the free mechanism.
        a_fall: its size, `|L⁻ᵀ f|`.
        rates: (nv,) `L v`.
        definite: see `Condensed`.
    """

    L: ca.SX
    X: ca.SX
    Z: ca.SX
    fall: ca.SX
    a_fall: ca.SX
    rates: ca.SX
    definite: ca.SX


def rooted(dynamics: Dynamics, v: ca.SX, *, rows: int = 0) -> Rooted:
    """Return the dynamics in coordinates in which the inertia is the identity.

    Args:
        dynamics: the matrices, M definite; structural zeros are used.
        v: (nv,) velocity.
        rows: of the QP. A loop in C is a fifteenth of the text of scalars and takes some
            microseconds more, which count where the QP is small.
    """
    given = {key: getattr(dynamics, key) for key in ("M", "f", "B", "G")} | {"v": v}
    long = rows >= LEAST_ROWS and LEAST_DOFS <= given["M"].shape[0] <= MOST_ROWS
    if long and any(isinstance(value, ca.MX) for value in given.values()):
        return Rooted(*_root_loop({key: ca.MX(value) for key, value in given.items()}))
    return Rooted(*in_scalars("root", _rooted, given, kept=True))


LEAST_DOFS, LEAST_ROWS = 24, 100
"""Degrees of freedom, and rows of the QP, from which on the root is a loop in C."""


def _root_loop(given: dict[str, ca.MX]) -> list[Any]:
    """Return the fields of `Rooted` as a loop in C; scalars make them in Python."""
    given = given | {key: ca.densify(given[key]) for key in ("f", "v")}
    made = scalar_function("root", _rooted, given)
    L, X, Z = (made.sparsity_out(i) for i in range(3))
    stored = [given["M"].sparsity(), given["B"].sparsity(), given["G"].sparsity(), L, X, Z]
    (m, n), nu = given["G"].shape, given["B"].shape[1]

    def body(*inputs: ca.MX) -> list[ca.MX]:
        found = list(made.call(inputs))
        return [*(x.nz[:] for x in found[:3]), *found[3:]]

    f = loop_function(
        "loops_root",
        [x.sparsity() for x in given.values()],
        body,
        sizes=(n, m, nu, padded(n), padded(m + 1), padded(nu)),
        tables=[table for pattern in stored for table in (pattern.colind(), pattern.row())],
        work=n * (padded(n) + padded(m + 1) + padded(nu)),
    )
    results = f.call([*given.values()])
    matrices = [ca.MX(p, x) for p, x in zip((L, X, Z), results, strict=False)]
    return [*matrices, *results[3:]]


def _rooted(given: dict[str, ca.SX]) -> Rooted:
    L = linalg.tree_cholesky(given["M"])
    force = linalg.tree_solve_transposed(L, given["f"])
    return Rooted(
        L=L,
        X=linalg.tree_solve_transposed(L, given["G"].T).T,
        Z=linalg.tree_solve_transposed(L, given["B"]).T,
        fall=linalg.tree_solve_lower(L, force),
        a_fall=length(force),
        rates=L @ given["v"],
        definite=ca.mmin(ca.densify(ca.diag(L) ** 2 / ca.diag(given["M"]))),
    )


def constraint_basis(
    root: Rooted, *, row_scale: ca.SX | ca.DM, rank_tol: float
) -> linalg.RowBasis[ca.SX]:
    """Return an orthonormal basis of the rows in the mass metric, taken in their order.

    Args:
        root: the dynamics.
        row_scale: (m,) usual length of each row in the mass metric.
        rank_tol: a row is dropped when the part of it that is independent of the rows above,
            in the mass metric, is at most this fraction of its own length or of its usual one
            (so that a vanishing row is dropped too).
    """
    return linalg.row_basis(root.X, row_scale=row_scale, rank_tol=rank_tol, pivot=False)


def condense(dynamics: Dynamics, root: Rooted, basis: linalg.RowBasis[ca.SX]) -> Condensed:
    """Return the condensed dynamics.

    Args:
        dynamics: the matrices, M definite.
        root: the same in other coordinates.
        basis: of its rows.
    """
    B, L = dynamics.B, root.L
    R, inverse = basis.R, linalg.inverse_diagonal(basis)
    F = linalg.tree_solve_lower(L, basis.V)
    Y_B = linalg.product(F.T, B)
    y_c = linalg.solve_upper_transposed(R, inverse, dynamics.c)
    y_0 = linalg.product(F.T, dynamics.f) + y_c
    T = (linalg.tree_solve_lower(L, root.Z.T).T - linalg.product(Y_B.T, F.T)).T
    return Condensed(
        T=_symmetric_rows(T, B, root.Z, Y_B),
        t=root.fall - linalg.product(F, y_0),
        E=linalg.solve_upper(R, inverse, Y_B),
        e=linalg.solve_upper(R, inverse, y_0),
        kept=basis.kept,
        a_ref=root.a_fall + length(y_c),
        slip=length(linalg.product(basis.V.T, root.rates)),
        definite=root.definite,
    )


def _symmetric_rows(T: ca.SX, B: ca.SX, Z: ca.SX, Y_B: ca.SX) -> ca.SX:
    """Return T with half of its symmetric part written once.

    `Bᵀ T = Zᵀ Z - Y_Bᵀ Y_B` is symmetric; where a column of B is one constant on one joint,
    that joint's row of T is a row of this matrix over the constant.
    """
    direct = direct_drives(B) if isinstance(B, ca.SX) else {}
    if not direct:
        return T
    S = ca.triu(Z @ Z.T - Y_B.T @ Y_B)
    S = ca.triu2symm(S)
    for column, (dof, gear) in direct.items():
        T[dof, :] = S[column, :] / gear
    return T
