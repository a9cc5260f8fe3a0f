"""Rows of a limb are taken by the length that is left of them."""

import casadi as ca
import numpy as np

from mbcasadi.dynamics.turned_limb import turned_limb
from mbcasadi.linalg.limbs import Limb


def test_the_strongest_row_comes_first():
    G = np.random.default_rng(0).standard_normal((4, 5)) * [[1.0], [1e-3], [10.0], [1e-6]]
    limb = Limb(rows=(0, 1, 2, 3), columns=(0, 1, 2, 3))
    rows = turned_limb(ca.SX(G), limb, [4], ca.SX.ones(4, 1)).rows
    order = [int(np.argmax(ca.evalf(row.place).full())) for row in rows]
    assert order == [2, 0, 1, 3]
