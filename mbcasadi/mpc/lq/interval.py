"""One interval of a stagewise linear-quadratic problem, and its step of every recursion.

    x⁺ = A x + E B u + d,   cost = ½ xᵀ Q x + xᵀ S u + ½ uᵀ R u + qᵀ x + rᵀ u,
    values = G_x x + G_u u + g

Blocks are numbers, or expressions of columns `data` that differ from interval to interval. In the
unknowns of a Riccati recursion the Hessian of the whole horizon is the identity:

    cost = Σ ½ |w_k|² + const,   w_k = U_k (u_k + K_k x_k + κ_k),   Uᵀ U = R + Bᵀ Eᵀ P E B

so the least-distance form takes N small steps, without a factor of the whole Hessian. The rows of
an interval bound y = (u, some entries of x⁺, values).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, cast

import casadi as ca
import numpy as np

from mbcasadi.linalg.symbols import Sym
from mbcasadi.mpc.ocp.constraints import RowSet

UNROLLED = 20_000
"""Operations of one interval up to which a part of it is scalar code."""

SPARSEST = 10
"""Products of full matrices have at most this many times the operations of sparse ones here."""

KINDS = (cast(type[ca.MX], ca.SX), ca.MX)
"""Scalars and matrices; both offer the same operations."""


@dataclass(frozen=True)
class Interval(Generic[Sym]):
    """The blocks of the module's docstring.

    Attributes:
        data: (n_i, 1) columns of the interval, of which the blocks are expressions.
        A, B, d: (nx, nx), (ne, nu), (nx, 1).
        Q, S, R, q, r: (nx, nx), (nx, nu), (nu, nu), (nx, 1), (nu, 1).
        G_x, G_u, g: (ng, nx), (ng, nu), (ng, 1).
        E: (nx, ne), through which the control enters; None for the identity.
    """

    data: tuple[Sym, ...]
    A: Sym
    B: Sym
    d: Sym
    Q: Sym
    S: Sym
    R: Sym
    q: Sym
    r: Sym
    G_x: Sym
    G_u: Sym
    g: Sym
    E: Sym | None = None

    @property
    def kind(self) -> type[Sym]:
        """`ca.SX` or `ca.MX`."""
        return type(self.A)

    def effect(self, u: Sym) -> Sym:
        """Return `E B u`."""
        return self.B @ u if self.E is None else self.E @ (self.B @ u)

    def pull(self, costate: Sym) -> Sym:
        """Return `Bᵀ Eᵀ costate`."""
        return self.B.T @ (costate if self.E is None else self.E.T @ costate)

    def inertia(self, P: Sym) -> Sym:
        """Return `R + Bᵀ Eᵀ P E B`."""
        if self.E is None:
            return self.R + self.B.T @ (P @ self.B)
        return self.R + self.B.T @ ((self.E.T @ (P @ self.E)) @ self.B)


@dataclass(frozen=True)
class BoundedValues:
    """Which values an interval bounds, and their rows.

    Attributes:
        controls: whether y begins with u.
        states: entries of x⁺ that are bounded.
        rows: of y.
    """

    controls: bool
    states: Sequence[int]
    rows: RowSet

    def choose(self, nx: int) -> ca.DM:
        """Return what selects the bounded entries of x⁺."""
        return ca.sparsify(ca.DM(np.eye(nx)[list(self.states)]))


class Recursion(NamedTuple):
    """The Functions of one interval; `data` stands for its columns.

    `cost` is (P, p), (nx, nx + 1): the cost to go is ½ xᵀ P x + pᵀ x. `gain` is the column
    (U⁻¹, K, κ).
    """

    riccati: ca.Function  # (cost, data) → (cost, gain)
    motion: ca.Function  # (x, w, data, gain) → (x, u)
    along: ca.Function  # (x, u, data) → (g)
    adjoint: ca.Function  # (costate, data, x, u, mu) → (costate, slope, size)
    rows: ca.Function | None = None  # (X, data, gain, place) → (X, rows transposed), of all w
    first: ca.Function | None = None  # (data, gain) → (X, rows transposed), of the own w
    later: ca.Function | None = None  # (X, data, gain) → (X, rows transposed), of an earlier w


class _Gain(NamedTuple, Generic[Sym]):
    column: Sym
    U_inv: Sym
    K: Sym
    kappa: Sym


def recursion(
    make: Callable[[type[ca.MX]], Interval[ca.MX]],
    bounded: BoundedValues,
    columns: tuple[int, int, int] | None,
) -> Recursion:
    """Return the Functions, each in scalars, or in matrices (loops) where it is long.

    Args:
        make: the interval by the kind of its expressions.
        bounded: what its rows bound.
        columns: numbers of unknowns w before, of intervals like this one, and of unknowns behind:
            the rows of each interval are derived by all of them at once, in a loop. None where
            each pair of intervals has a block of its own: half the operations, and text for each.
    """
    sizes = make(ca.MX)
    nx, nu, values = sizes.A.shape[0], sizes.B.shape[1], bounded.rows.T.shape[1]

    def shortest(
        build: Callable[[Interval[ca.MX], _Gain[ca.MX]], ca.Function], products: int
    ) -> ca.Function:
        for kind in KINDS if products <= SPARSEST * UNROLLED else KINDS[1:]:
            interval = make(kind)
            function = build(interval, _gain(interval))
            if is_small(function):
                break
        return function

    def all_columns(interval: Interval[ca.MX], gain: _Gain[ca.MX]) -> ca.Function:
        kind, (before, count, after) = interval.kind, columns or (0, 0, 0)
        X, place = kind.sym("X", nx, before + count * nu + after), kind.sym("place", count)
        own = ca.horzcat(kind(nu, before), ca.kron(place.T, gain.U_inv), kind(nu, after))
        effect = _response(interval, bounded, X, own - gain.K @ X)
        return dense_function("rows", [X, *interval.data, gain.column, place], effect)

    def own_columns(interval: Interval[ca.MX], gain: _Gain[ca.MX]) -> ca.Function:
        effect = _response(interval, bounded, interval.kind(nx, nu), gain.U_inv)
        return dense_function("first", [*interval.data, gain.column], effect)

    def earlier_columns(interval: Interval[ca.MX], gain: _Gain[ca.MX]) -> ca.Function:
        X = interval.kind.sym("X", nx, nu)
        effect = _response(interval, bounded, X, -gain.K @ X)
        return dense_function("later", [X, *interval.data, gain.column], effect)

    per_column = 2 * nx * (nx + 2 * nu)
    if columns is None:
        by_w = {
            "first": shortest(own_columns, per_column * nu),
            "later": shortest(earlier_columns, per_column * nu),
        }
    else:
        width = columns[0] + columns[1] * nu + columns[2]
        by_w = {"rows": shortest(all_columns, per_column * width)}
    return Recursion(
        riccati=shortest(_riccati, 4 * nx**3),
        motion=shortest(_motion, 2 * nx * nx),
        along=shortest(_along, 2 * nx * values),
        adjoint=shortest(lambda interval, _: _adjoint(interval, bounded), 2 * nx * (nx + values)),
        **by_w,
    )


def is_small(function: ca.Function) -> bool:
    """Return whether a Function is scalar and short."""
    return bool(function.is_a("SXFunction")) and function.n_instructions() <= UNROLLED


def dense_function(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> ca.Function:
    """Return the Function with dense outputs."""
    return ca.Function(name, inputs, [ca.densify(part) for part in outputs], {"cse": True})


def blocks_of(
    kind: type[Sym], name: str, patterns: dict[str, ca.Sparsity]
) -> tuple[Sym, dict[str, Sym]]:
    """Return a column of symbols, and the blocks of which it holds the entries."""
    whole = kind.sym(name, sum(pattern.nnz() for pattern in patterns.values()))
    ends = np.cumsum([0, *(pattern.nnz() for pattern in patterns.values())]).tolist()
    pairs = zip(patterns.items(), ca.vertsplit(whole, ends), strict=True)
    return whole, {key: kind(pattern, part) for (key, pattern), part in pairs}


def _gain(interval: Interval[Sym]) -> _Gain[Sym]:
    nx, nu = interval.A.shape[0], interval.B.shape[1]
    shapes = {"U_inv": (nu, nu), "K": (nu, nx), "kappa": (nu, 1)}
    patterns = {key: ca.Sparsity.dense(*shape) for key, shape in shapes.items()}
    column, blocks = blocks_of(interval.kind, "gain", patterns)
    return _Gain(column, **blocks)


def _riccati(interval: Interval[Sym], _: _Gain[Sym]) -> ca.Function:
    """Return one step back, in which the cost becomes ½ |w|² and a cost to go."""
    nx, nu = interval.A.shape[0], interval.B.shape[1]
    cost = interval.kind.sym("cost", nx, nx + 1)
    P, p = cost[:, :nx], cost[:, nx]
    PA, g = P @ interval.A, P @ interval.d + p
    U_inv = _inverse_root(nu)(ca.densify(interval.inertia(P)))
    half_gain = U_inv.T @ (interval.S.T + interval.pull(PA))
    half_offset = U_inv.T @ (interval.r + interval.pull(g))
    P_next = interval.Q + interval.A.T @ PA - half_gain.T @ half_gain
    p_next = interval.q + interval.A.T @ g - half_gain.T @ half_offset
    gain = ca.vertcat(ca.vec(U_inv), ca.vec(U_inv @ half_gain), U_inv @ half_offset)
    return dense_function("riccati", [cost, *interval.data], [ca.horzcat(P_next, p_next), gain])


def _inverse_root(n: int) -> ca.Function:
    """Return (S) → (U⁻¹) with `Uᵀ U = S`, U upper triangular."""
    S = ca.SX.sym("S", n, n)
    return ca.Function("inverse_root", [S], [ca.densify(ca.solve(ca.chol(S), ca.SX.eye(n)))])


def _response(interval: Interval[Sym], bounded: BoundedValues, X: Sym, u: Sym) -> list[Sym]:
    """Return the derivatives by some w of the state at the end and of the rows, transposed.

    Args:
        interval: the interval.
        bounded: what its rows bound.
        X, u: derivatives of its state and its control.
    """
    X_next = interval.A @ X + interval.effect(u)
    values = ca.vertcat(
        *([u] if bounded.controls else []),
        bounded.choose(X.shape[0]) @ X_next,
        interval.G_x @ X + interval.G_u @ u,
    )
    return [X_next, (ca.sparsify(ca.DM(bounded.rows.T)) @ values).T]


def _motion(interval: Interval[Sym], gain: _Gain[Sym]) -> ca.Function:
    kind = interval.kind
    x, w = kind.sym("x", interval.A.shape[0]), kind.sym("w", interval.B.shape[1])
    u = gain.U_inv @ w - gain.K @ x - gain.kappa
    x_next = interval.A @ x + interval.effect(u) + interval.d
    return dense_function("motion", [x, w, *interval.data, gain.column], [x_next, u])


def _along(interval: Interval[Sym], _: _Gain[Sym]) -> ca.Function:
    kind = interval.kind
    x, u = kind.sym("x", interval.A.shape[0]), kind.sym("u", interval.B.shape[1])
    g = interval.g + interval.G_x @ x + interval.G_u @ u
    return dense_function("along", [x, u, *interval.data], [g])


def _adjoint(interval: Interval[Sym], bounded: BoundedValues) -> ca.Function:
    """Return the gradient by u, from the interval's own numbers, and the size of its terms.

    A unit of control counts as a term too, because at rest all others vanish.
    """
    kind, (nx, nu) = interval.kind, (interval.A.shape[0], interval.B.shape[1])
    x, u = kind.sym("x", nx), kind.sym("u", nu)
    costate, mu = kind.sym("costate", nx), kind.sym("mu", bounded.rows.T.shape[1])
    first = nu if bounded.controls else 0
    ahead = first + len(bounded.states)
    on_g = mu[ahead:, 0]
    by_rows = interval.G_u.T @ on_g
    if bounded.controls:
        by_rows = mu[:nu, 0] + by_rows
    total = costate + bounded.choose(nx).T @ mu[first:ahead, 0]
    by_cost = interval.r + interval.S.T @ x + interval.R @ u
    by_costate = interval.pull(total)
    size = ca.sumsqr(by_cost) + ca.sumsqr(by_costate) + ca.sumsqr(by_rows)
    size += ca.sumsqr(interval.R)
    earlier = interval.q + interval.Q @ x + interval.S @ u + interval.A.T @ total
    earlier += interval.G_x.T @ on_g
    inputs = [costate, *interval.data, x, u, mu]
    return dense_function("adjoint", inputs, [earlier, by_cost + by_costate + by_rows, size])
