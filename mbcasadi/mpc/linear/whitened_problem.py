"""The condensed QP in the unknown in which its Hessian is the identity, as numbers."""

from dataclasses import dataclass

import numpy as np
import scipy

from mbcasadi.mpc.linear.condensing import CondensedProblem
from mbcasadi.mpc.linear.prediction_model import Array


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


def least_distance_problem(condensed: CondensedProblem) -> LeastDistanceProblem:
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
