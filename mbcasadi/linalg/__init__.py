"""Rank-revealing linear algebra that becomes branch-free C, with derivatives."""

from mbcasadi.linalg.basis import (
    RANK_TOL,
    RowBasis,
    null_basis,
    null_basis_fun,
    projector_fun,
    rank_fun,
    row_basis,
    row_basis_fun,
)
from mbcasadi.linalg.basis import (
    complement as complement,
)
from mbcasadi.linalg.basis import (
    projector as projector,
)
from mbcasadi.linalg.basis import (
    rank as rank,
)
from mbcasadi.linalg.bounded_least_norm import bounded_least_norm
from mbcasadi.linalg.factor import operations as operations
from mbcasadi.linalg.limb_factor import LimbFactor, limb_factor
from mbcasadi.linalg.limbs import Limb, Limbs, limbs_of
from mbcasadi.linalg.matrix_root import MatrixRoot, matrix_root, matrix_root_fun, root_operations
from mbcasadi.linalg.positive_solve import positive_solve, positive_solve_fun
from mbcasadi.linalg.products import inverse_factor, weighted_gram
from mbcasadi.linalg.products import product as product
from mbcasadi.linalg.pseudo_inverse import (
    CompleteFactor,
    complete_factor,
    complete_factor_and_null_basis,
    complete_factor_scaled,
    damped_pinv,
    damped_pinv_fun,
    pinv,
    pinv_fun,
)
from mbcasadi.linalg.symbols import UNROLL_LIMIT, DropRule, Sym, kind_for
from mbcasadi.linalg.tree_factor import (
    tree_cholesky,
    tree_cholesky_fun,
    tree_solve,
    tree_solve_fun,
    tree_solve_lower,
    tree_solve_transposed,
)
from mbcasadi.linalg.triangular import (
    inverse_diagonal,
    solve_kept,
    solve_upper,
    solve_upper_transposed,
)

__all__ = [
    "RANK_TOL",
    "UNROLL_LIMIT",
    "CompleteFactor",
    "DropRule",
    "Limb",
    "LimbFactor",
    "Limbs",
    "MatrixRoot",
    "RowBasis",
    "Sym",
    "bounded_least_norm",
    "complete_factor",
    "complete_factor_and_null_basis",
    "complete_factor_scaled",
    "damped_pinv",
    "damped_pinv_fun",
    "inverse_diagonal",
    "inverse_factor",
    "kind_for",
    "limb_factor",
    "limbs_of",
    "matrix_root",
    "matrix_root_fun",
    "null_basis",
    "null_basis_fun",
    "pinv",
    "pinv_fun",
    "positive_solve",
    "positive_solve_fun",
    "projector_fun",
    "rank_fun",
    "root_operations",
    "row_basis",
    "row_basis_fun",
    "solve_kept",
    "solve_upper",
    "solve_upper_transposed",
    "tree_cholesky",
    "tree_cholesky_fun",
    "tree_solve",
    "tree_solve_fun",
    "tree_solve_lower",
    "tree_solve_transposed",
    "weighted_gram",
]

NOT_STARRED = ("complement", "operations", "product", "projector", "rank")
"""Public names that `import *` leaves out: they are words that people have variables of."""
