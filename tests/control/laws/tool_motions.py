"""Tools of planar mechanisms, and what they do under a force, for the tests of the laws."""

import functools

import numpy as np
from a10_motions import flat, system_of

import mbcasadi as mb
from mbcasadi.control import FrameTask
from mbcasadi.control.laws import LawOptions

PLANE = {"five_bar": (0, 2), "planar_3rrr": (0, 1)}
STRONG = 1e5  # N m, limits that no test reaches


def tool(name, **options):
    return FrameTask(
        "tool", position="xyz"[PLANE[name][0]] + "xyz"[PLANE[name][1]], orientation="", **options
    )


def strong(system):
    return {"options": LawOptions(ctrl_limits=np.tile([-STRONG, STRONG], (system.nu, 1)))}


def place_of(name, q):
    return flat(system_of(name).frame("tool").pose(q)[0])[0][list(PLANE[name])]


@functools.cache
def dynamics_of(name):
    return mb.forward_dynamics(system_of(name), "lagrange", derivatives=False)


def acceleration_of(name, q, v, f):
    """Joint acceleration under the force f, and the tool's: `J a + c`."""
    system, rows = system_of(name), list(PLANE[name])
    a = dynamics_of(name)(q, v, f)[0].full().ravel()
    frame = system.frame("tool")
    J, c = frame.jacobian(q).full()[rows], frame.bias(q, v).full().ravel()[rows]
    return a, J @ a + c, J


def motor_force(law, q, v, ref):
    """Force of the motors, without their limits, and the status."""
    u, _, status, *_ = law.function(q, v, ref, [])
    return (law.system.actuation(q) @ u).full().ravel(), float(status)
