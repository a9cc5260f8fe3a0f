"""The estimate of operations by which loops take the place of plain code."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.formulation.limbwise import limbwise, limbwise_operations


def patterns(limbs, joints, base, rows):
    """Return those of M and A: limbs on a base, each with rows of its own."""
    n = base + limbs * joints
    M, A = np.zeros((n, n)), np.zeros((limbs * rows, n))
    M[:, :base] = M[:base] = A[:, :base] = 1.0
    for limb in range(limbs):
        own = slice(base + limb * joints, base + (limb + 1) * joints)
        M[own, own] = A[limb * rows : (limb + 1) * rows, own] = 1.0
    return [ca.sparsify(ca.DM(x)).sparsity() for x in (M, A)]


@pytest.mark.parametrize("mechanism", [(4, 3, 6, 3), (2, 6, 6, 3)])
def test_operations_are_estimated_within_a_factor_of_two(mechanism):
    M, A = (ca.SX.sym(name, of) for name, of in zip("MA", patterns(*mechanism), strict=True))
    h, f, c = (ca.SX.sym(name, m) for name, m in zip("hfc", (*M.shape, A.shape[0]), strict=True))
    actual = ca.Function("motion", [M, h, f, A, c], [limbwise(M, h, f, A, c).a])
    operations = actual.n_instructions() - actual.nnz_in() - actual.nnz_out()
    assert 0.5 < limbwise_operations(M.sparsity(), A.sparsity()) / operations < 2
