"""Contacts of wheels: the lowest point of a disc that rolls, with rollers or without.

A disc with the centre p + R c, the axle a (a unit vector of its body) and the radius r touches the
plane with the normal n at

    p + d,   d = R c - r u/|u|,   u = n - a (aᵀ n).

The velocity of its material there is `s = ṗ + ω × d`, and the rate of s at zero joint acceleration

    J̇_p v + J̇_ω v × d + ω × ḋ,   Ṙ c = ω × R c,   ȧ = ω × a.

d moves over the disc, so a wheel that rolls has s = 0. Without rollers all of s is held: the wheel
rolls along `h = n × a/|n × a|` and does not slip along its axle. Its rows are n, h and n × h, so
that those of wheels on one axle are independent, or repeat, whatever the heading. Rollers turn
freely: of s only the components along n and along the axis of the roller that touches,

    h_γ = cos γ h + sin γ (n × h),

are held, γ = 0 for an omnidirectional wheel and ±45° for a mecanum wheel. These are rows of
velocities that no positions integrate to (nonholonomic); `h_γᵀ s` has the rate
`h_γᵀ ṡ + ḣ_γᵀ s`.
"""

from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi.description import Contact, Wheel
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_positive
from mbcasadi.system import FrameFunctions


class WheelRows(NamedTuple):
    """Rows of a wheel, `J a + c = 0`, and the force (n, t1, t2) of their multipliers.

    Attributes:
        J, c: (m, nv), (m, 1); three rows, or two with rollers.
        of_lam: (3, m).
    """

    J: ca.SX
    c: ca.SX
    of_lam: ca.SX


def wheel_rows(
    frame: FrameFunctions, wheel: Wheel, axes: ca.DM | ca.SX, state: tuple[ca.SX, ca.SX]
) -> WheelRows:
    """Return the rows of a wheel on a plane.

    Args:
        frame: in whose axes the disc is fixed.
        wheel: its axle, radius, centre and rollers.
        axes: (3, 3) rows n, t1, t2 in world axes.
        state: q, v.
    """
    q, v = state
    turn, R = ca.SX(axes), ca.SX(frame.pose(q)[1])
    J, bias = ca.SX(frame.jacobian(q)), ca.SX(frame.bias(q, v))
    n, a, w = turn[0, :].T, R @ ca.DM(_unit(wheel)), J[3:, :] @ v
    u, a_rate = n - a * ca.dot(a, n), ca.cross(w, a)
    u_rate = -a_rate * ca.dot(a, n) - a * ca.dot(a_rate, n)
    arm, (down, down_rate) = R @ ca.DM(wheel.center), _direction(u, u_rate)
    d, d_rate = arm - wheel.radius * down, ca.cross(w, arm) - wheel.radius * down_rate
    of_material = J[:3, :] - ca.skew(d) @ J[3:, :]
    rate = bias[:3] + ca.cross(bias[3:], d) + ca.cross(w, d_rate)
    h, h_rate = _direction(ca.cross(n, a), ca.cross(n, a_rate))
    cosine, sine = np.cos(wheel.roller or 0.0), np.sin(wheel.roller or 0.0)
    h, h_rate = (cosine * x + sine * ca.cross(n, x) for x in (h, h_rate))
    along, rates = [n, h], [ca.SX(3, 1), h_rate]
    if wheel.roller is None:
        along, rates = [*along, ca.cross(n, h)], [*rates, ca.cross(n, h_rate)]
    held, drift = ca.horzcat(*along).T, ca.horzcat(*rates).T @ (of_material @ v)
    return WheelRows(held @ of_material, held @ rate + drift, turn @ held.T)


def _direction(u: ca.SX, u_rate: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return `u/|u|` and its rate."""
    length = ca.norm_2(u)
    e = u / length
    return e, (u_rate - e * ca.dot(e, u_rate)) / length


def _unit(wheel: Wheel) -> np.ndarray:
    axle = np.asarray(wheel.axle, dtype=float)
    return np.asarray(axle / np.linalg.norm(axle))


def require_wheel(contact: Contact, *, able: bool) -> None:
    """Raise unless a contact is none of a wheel, or a valid one of a law that has wheels.

    Args:
        contact: to check.
        able: whether its user has wheels.

    Raises:
        ProblemError: as above; a wheel that slides or is on another body, or an axle of zero.
    """
    if contact.wheel is None:
        return
    label, wheel = f"contact {contact.frame!r}", contact.wheel
    if not able:
        raise ProblemError(
            f"{label} is of a wheel; expected one without: wheels are for InverseDynamicsQP"
        )
    if contact.slides or contact.other or contact.kind == "contact":
        raise ProblemError(
            f"{label} of a wheel: slides {contact.slides}, other {contact.other!r}, kind "
            f"{contact.kind!r}; expected a site, body or geom of the wheel, on the world"
        )
    require_positive(**{f"{label}: radius of the wheel": wheel.radius})
    axle = np.asarray(wheel.axle, dtype=float)
    if axle.shape != (3,) or not np.all(np.isfinite(axle)) or not axle.any():
        raise ProblemError(f"{label}: axle {wheel.axle}; expected three numbers, not zero")
    if wheel.roller is not None and not abs(wheel.roller) < np.pi / 2:
        raise ProblemError(f"{label}: roller {wheel.roller} rad; expected within -π/2 and π/2")
