"""From a wanted motion to controls: what actuators can do through the constraints."""

from typing import NamedTuple

import casadi as ca

from mbcasadi.control.laws.dynamics import ATTAIN_TOL, Mechanism
from mbcasadi.linalg import complete_factor


class Allocation(NamedTuple):
    """Controls for a motion: `u` (nu, 1), what no control gives `left` (nv, 1), and whether.

    `attainable` is one where `left` is small beside the wanted force.
    """

    u: ca.SX
    left: ca.SX
    attainable: ca.SX


def allocate(mechanism: Mechanism, a: ca.SX) -> Allocation:
    """Return `u = (P B)⁺ P (M a + h - f_0)`  [A16, eq. 19 corrected].

    u has the minimum norm among the controls that come nearest; `left` is
    `P (M a + h - f_0 - B u)`, zero where the motion is possible.
    """
    m = mechanism
    wanted = m.P @ (m.M @ a + m.h - m.f_0)
    PB = m.P @ m.B
    u = complete_factor(PB, rank_tol=m.rank_tol).pinv_times(wanted)
    left = wanted - PB @ u
    return Allocation(u, left, ca.norm_2(left) <= ATTAIN_TOL * (1 + ca.norm_2(wanted)))
