"""Rank-revealing linear algebra that becomes branch-free C, with derivatives."""

from mbcasadi.linalg.basis import (
    RANK_TOL,
    RowBasis,
    complement,
    null_basis,
    null_basis_fun,
    projector,
    projector_fun,
    rank,
    rank_fun,
    row_basis,
    row_basis_fun,
)

__all__ = [
    "RANK_TOL",
    "RowBasis",
    "complement",
    "null_basis",
    "null_basis_fun",
    "projector",
    "projector_fun",
    "rank",
    "rank_fun",
    "row_basis",
    "row_basis_fun",
]
