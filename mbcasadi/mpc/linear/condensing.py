"""Condensing: a linear MPC problem without its states, a small QP with constant matrices.

    min ½ yᵀ H y + (G θ + g_0)ᵀ y,   lower <= C y + D θ + c_0 <= upper

y are the moves and the slacks, θ = (x_0, r, s, u_{-1}) changes from tick to tick. The states follow
from the equality rows of the form with states, `w = Y y + Y_θ θ + y_0`. H is factored when the
controller is built; a tick only computes products with θ.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy

from mbcasadi.mpc.linear.form import RowName, StagewiseForm, stagewise_form
from mbcasadi.mpc.linear.model import Array
from mbcasadi.mpc.linear.parameters import parameters_of
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.lq.sparse import SparseQP
from mbcasadi.short_text import summarised


@summarised
@dataclass(frozen=True)
class CondensedForm:
    """The QP in the form of the module's docstring.

    Attributes:
        H, G, g_0: (n, n), (n, nθ), (n,).
        C, D, c_0, lower, upper: (m, n), (m, nθ), (m,).
        rows: what each row is.
        slacks: number of unknowns after the moves.
        signed: rows that are signs of slacks.
        form, qp: the form with states, and its QP, whose numbers H, E and C hold for all θ.
        maps: Y, Y_θ and y_0 of all unknowns w of that form.
    """

    H: Array
    G: Array
    g_0: Array
    C: Array
    D: Array
    c_0: Array
    lower: Array
    upper: Array
    rows: tuple[RowName, ...]
    slacks: int
    signed: int
    form: StagewiseForm
    qp: SparseQP
    maps: tuple[Array, Array, Array]

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each row."""
        return tuple(str(row) for row in self.rows)

    @property
    def later(self) -> list[int]:
        """(m,) index of the same row at the next sample, or its own: the shift of an active set."""
        place = {row: i for i, row in enumerate(self.rows)}
        return [place.get(row._replace(at=row.at + 1), i) for i, row in enumerate(self.rows)]

    @property
    def resting(self) -> Array:
        """Return the active set (m,) in which all slacks are zero and no other row is active."""
        active = np.zeros(len(self.rows))
        active[len(active) - self.signed :] = -1.0
        return active


def condense_problem(problem: LinearProblem) -> CondensedForm:
    """Return the QP in moves and slacks, equivalent to the problem with states."""
    form = stagewise_form(problem)
    theta = ca.MX.sym("theta", parameters_of(form.problem).size)
    qp = form.qp(theta)
    g, e, c = ([part.full() for part in _affine(theta, value)] for value in (qp.g, qp.e_0, qp.c))
    unknowns = np.arange(qp.H.shape[0])
    states = np.concatenate([unknowns[place] for place in qp.states])
    y = np.setdiff1d(unknowns, states)
    E = qp.E.full()

    def solved(rows: Array) -> Array:
        # Each state is the end of an interval: E is lower triangular there, with a unit diagonal.
        return np.asarray(scipy.linalg.solve_triangular(E[:, states], rows, lower=True))

    Y, Y_theta = np.zeros((len(unknowns), len(y))), np.zeros((len(unknowns), theta.numel()))
    y_0 = np.zeros(len(unknowns))
    Y[y], Y[states] = np.eye(len(y)), -solved(E[:, y])
    Y_theta[states], y_0[states] = solved(e[0]), solved(e[1]).ravel()
    H_w, C_w = qp.H.full(), qp.C.full()
    H, signed = Y.T @ H_w @ Y, len(qp.signed)
    return CondensedForm(
        H=(H + H.T) / 2,
        G=Y.T @ (H_w @ Y_theta + g[0]),
        g_0=Y.T @ (H_w @ y_0 + g[1].ravel()),
        C=C_w @ Y,
        D=C_w @ Y_theta + c[0],
        c_0=C_w @ y_0 + c[1].ravel(),
        lower=qp.bounds[:, 0],
        upper=qp.bounds[:, 1],
        rows=tuple(form.names),
        slacks=qp.slacks.stop - qp.slacks.start,
        signed=signed,
        form=form,
        qp=qp,
        maps=(Y, Y_theta, y_0),
    )


def _affine(theta: ca.MX, value: ca.MX) -> tuple[ca.DM, ca.DM]:
    """Return the derivative by θ of an affine expression, and its value at zero."""
    parts = [ca.densify(ca.jacobian(value, theta)), ca.densify(value)]
    of_theta, at_0 = ca.Function("affine", [theta], parts)(ca.DM.zeros(theta.shape))
    return of_theta, at_0


@dataclass(frozen=True)
class LeastDistanceProblem:
    """`min ½ xᵀx, l_0 - E θ <= A x <= u_0 - E θ`;  `y = L_inv x - (K θ + k_0)`."""

    A: Array
    E: Array
    l_0: Array
    u_0: Array
    L_inv: Array
    K: Array
    k_0: Array


def least_distance_problem(condensed: CondensedForm) -> LeastDistanceProblem:
    """Return the QP in the unknown in which its Hessian is the identity; `H = Lᵀ L`."""
    n = condensed.H.shape[0]
    L = scipy.linalg.cholesky(condensed.H[::-1, ::-1], lower=False)[::-1, ::-1]
    L_inv = scipy.linalg.solve_triangular(L, np.eye(n), lower=True)
    K, k_0 = L_inv @ (L_inv.T @ condensed.G), L_inv @ (L_inv.T @ condensed.g_0)
    shift = condensed.c_0 - condensed.C @ k_0
    return LeastDistanceProblem(
        A=condensed.C @ L_inv,
        E=condensed.D - condensed.C @ K,
        l_0=condensed.lower - shift,
        u_0=condensed.upper - shift,
        L_inv=L_inv,
        K=K,
        k_0=k_0,
    )
