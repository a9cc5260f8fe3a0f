"""From a wanted motion to controls: what actuators can do through the constraints."""

import casadi as ca

from mbcasadi.control.laws.dynamics import Mechanism
from mbcasadi.linalg import complete_factor


def allocate(mechanism: Mechanism, a: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return `u = (P B)⁺ P (M a + h - f_0)` and what no control gives  [A16, eq. 19 corrected].

    u has the minimum norm among the controls that come nearest; the second value (nv, 1) is
    `P (M a + h - f_0 - B u)`, zero where the motion is possible.
    """
    m = mechanism
    wanted = m.P @ (m.M @ a + m.h - m.f_0)
    PB = m.P @ m.B
    u = complete_factor(PB, rank_tol=m.rank_tol).pinv_times(wanted)
    return u, wanted - PB @ u
