"""An oscillator with drift, and linear MPC of it with every option; linear MPC of our models."""

from functools import cache

import numpy as np

import mbcasadi as mb
from mbcasadi import models, mpc

PERIOD, HORIZON = 0.1, 8
MODEL = mpc.LinearModel.of(
    [[1.0, PERIOD], [-0.2 * PERIOD, 1.0]], [[PERIOD**2 / 2], [PERIOD]], PERIOD, [0.01, -0.02]
)
STILL = mpc.LinearModel.of(MODEL.A, MODEL.B, PERIOD)  # a terminal set lies around a rest
SPEED = mpc.Output("speed", [[0.0, 1.0]], [[0.0]], [-0.5], [0.6])
SOFT = mpc.Output("place", [[1.0, 0.0]], [[0.0]], [-9.0], [0.3], 50.0, 4.0)
MIXED = mpc.Output("mix", [[0.3, 0.2]], [[1.0]], [-0.9], [0.7])
CASES = {
    "bounded": {"u_bounds": [[-1.0, 1.0]], "outputs": [SPEED]},
    "rates": {"u_bounds": [[-1.0, 1.0]], "du_bounds": [[-0.2, 0.3]], "S": 0.5},
    "delay": {"u_bounds": [[-1.0, 1.0]], "du_bounds": [[-0.5, 0.5]], "delay": 2},
    "blocks": {"u_bounds": [[-1.0, 1.0]], "blocks": [1, 1, 2, 4], "outputs": [SPEED]},
    "preview": {"u_bounds": [[-0.4, 0.4]], "preview": True},
    "soft": {"u_bounds": [[-1.0, 1.0]], "outputs": [SOFT, MIXED]},
    "ended": {"u_bounds": [[-1.0, 1.0]], "outputs": [SPEED], "terminal_set": True},
}


def options_of(case=None, **options):
    """Return the options of a case, or of none of them."""
    given = {"horizon": HORIZON, "Q": [2.0, 0.1], "R": 0.3} | CASES.get(case, {})
    return mpc.LinearOptions(**given | options)


def controller_of(case=None, **options):
    """Return the controller of a case."""
    return mpc.lti_mpc(STILL if case == "ended" else MODEL, options_of(case, **options))


def advance(x, u):
    """Return the next state of the oscillator."""
    return MODEL.A @ x + MODEL.B @ np.atleast_1d(u) + MODEL.drift


@cache
def at_rest(name):
    """Return one of our models, linear about its equilibrium."""
    system = mb.read_mjcf(models.path(name))
    return mb.linearize(system, mb.equilibrium(system))


def mechanism_options(linear, horizon, R=1.0, *, Q=(10.0, 0.01), **options):
    """Return options for a mechanism; `Q` has a weight of positions and one of velocities."""
    return mpc.LinearOptions(horizon, np.repeat(Q, linear.system.nv), R, **options)


def mechanism_mpc(linear, *weights, **options):
    """Return linear MPC of a mechanism with such options."""
    return mpc.linear_mpc(linear, mechanism_options(linear, *weights, **options))


def held(law, linear):
    """Return the reference of the equilibrium."""
    return law.reference(setpoint_q=linear.q, setpoint_u=linear.u)


def recorded(law, linear, model, duration, **plant):
    """Return what MuJoCo's plant does where the law is to hold the equilibrium."""
    report = mb.validate(law, model, duration, reference=held(law, linear), **plant)
    return report.runs[0].recording


def row_values(out):
    """Return the outputs of a Function as arrays of one axis."""
    return [np.array(part).ravel() for part in out]
