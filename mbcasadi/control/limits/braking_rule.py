"""The rule of all limits of positions: what still can stop in time, and what stops it if not.

A coordinate is `left` before its limit and approaches it with the speed v; it accelerates by a
towards it during a tick of length h. Afterwards it must still be able to stop, with a deceleration
d that is planned:

    h v + c h² a + (v + h a)² / (2 d) <= left   where v + h a > 0,

with c = ½, or more where steps of MuJoCo advance the position by the velocity at their end. This is
quadratic in a, and its larger root is the bound (A. Del Prete, "Joint position and velocity
bounds in discrete-time acceleration/torque control of robot arms", RA-L 2018). Where the
coordinate moves away from its limit, the position at the end of the tick counts alone.

Where d does not suffice any more, the deceleration D is demanded that is needed now: held from here
on it stops at the limit,

    left = v² / (2 D) + (½ - c) h² D,

and no more than v/h, which halts within the tick. At the state where d just suffices D is d. What
is beyond its limit returns with d.
"""

import casadi as ca

from mbcasadi.control.tick.design import Tick

NO_WAY = 1e-30
"""m or rad, in a denominator: what does not approach needs no braking."""


def braking_bound(left: ca.SX, v: ca.SX, planned: float, tick: Tick) -> ca.SX:
    """Return the largest acceleration towards a limit that keeps it, or comes nearest to it.

    Args:
        left: distance to the limit.
        v: speed towards it.
        planned: deceleration d.
        tick: in which the acceleration acts.
    """
    h, d, share = tick.length, planned, tick.share
    most = ca.fmax(d, needed_braking(left, v, tick))
    b, c = 2 * h * (v + share * d * h), v**2 - 2 * d * (left - h * v)
    square = b**2 - 4 * h**2 * c
    root = (-b + ca.sqrt(ca.fmax(square, 0))) / (2 * h**2)
    stopping = ca.if_else(square >= 0, root, -most)
    halting, touching = -v / h, (left - h * v) / (share * h**2)
    leaving = ca.fmax(stopping, ca.fmin(halting, touching))
    return ca.fmax(ca.if_else(stopping >= halting, stopping, leaving), -most)


def needed_braking(left: ca.SX, v: ca.SX, tick: Tick) -> ca.SX:
    """Return the deceleration that stops at the limit, at most v/h; zero on the way back.

    Args:
        left: distance to the limit.
        v: speed towards it.
        tick: in which it begins.
    """
    h, towards = tick.length, ca.fmax(v, 0)
    curved = (2 * tick.share - 1) * (h * towards) ** 2
    held = ca.fmax(left, 0)
    way = ca.fmax(held + ca.sqrt(held**2 + curved), h * towards)  # at least that of one tick
    return towards**2 / (way + NO_WAY)
