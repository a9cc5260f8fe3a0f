"""KKT residuals of a QP, and the status that they allow."""

import casadi as ca


def positive(value: ca.SX) -> ca.SX:
    """Return `max(value, 0)`; NaN stays NaN, which `fmax` would hide."""
    return 0.5 * (value + ca.fabs(value))
