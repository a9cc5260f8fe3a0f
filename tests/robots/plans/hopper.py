"""The hopper of dm_control hops twenty times, and is pushed, by a real-time iteration of all of it.

As example 35 it is given one crouched pose at rest and a schedule of its contacts, heights of toe and
heel and the slip of the toe; here with semi-implicit steps, multipliers of the motion as forces, a
plant that is 10 % heavier and controls that act one tick late.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import casadi as ca
import numpy as np
from support.examples import example

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.control import DisturbanceObserver, InverseDynamicsQP, PostureTask
from mbcasadi.validation import Push
from robots.arms.row import Figure

OLD = example(35)
PERIOD, HORIZON, DELAY, MASS = OLD["PERIOD"], OLD["HORIZON"], 1, 0.1
STANDS, FLIES, LANDED = OLD["STANDS"], OLD["FLIES"], OLD["LANDED"]
HOPS, BANDWIDTH = 20, 3.0  # 1/s
CYCLE = PERIOD * (FLIES + LANDED)
PUSHES = [  # the first in a stance, the second in a flight
    Push("torso", (15.0, 0.0, 0.0), 4.0, 4.1),
    Push("torso", (-15.0, 0.0, 0.0), 8.0, 8.1),
]


def controller(free: mb.System, height: ca.Function, pose: np.ndarray) -> mpc.RealTimeIteration:
    """Return the iteration on the model with three rows, two heights and a slip."""
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    slip = ca.jtimes(free.frame("touch_toe").pose(q)[0][0], q, v)
    system = free.with_rows(q, v, phi=height(q)).with_rows(q, v, psi=slip).with_mask()
    at = mpc.stage_symbols(system)
    grip = OLD["FRICTION"] * (at.lam[0] + at.lam[1])
    cone = ca.vertcat(at.lam[:2], grip - at.lam[2], grip + at.lam[2]) / 100.0
    parts = [
        mpc.Cost(Q=OLD["ALONG"], R=0.3, Q_end=OLD["AT_END"]),
        mpc.Bounded(cone, -1e-3, linear_penalty=1.0, quadratic_penalty=1.0, name="cone"),
        mpc.ContactSchedule(closing=1.0, not_below={"phi0": 1, "phi1": 1}),
        mpc.Disturbance(),
    ]
    step = mpc.SemiImplicitStep()
    ocp = mpc.optimal_control_problem(system, HORIZON, PERIOD, parts, symbols=at, step=step)
    X, U = np.tile(np.r_[pose, np.zeros(7)], (HORIZON + 1, 1)), np.zeros((HORIZON, 4))
    return mpc.real_time_iteration(
        ocp,
        mpc.initial_guess(ocp, X, U),
        delay=DELAY,
        pending=np.zeros((DELAY, 4)),
        solver="stagewise",
        observer=DisturbanceObserver(bandwidth=BANDWIDTH),
    )
