"""An oscillator with drift, and linear MPC of it with every option."""

from mbcasadi.mpc import LinearModel, LinearOptions, Output, lti_mpc

PERIOD, HORIZON = 0.1, 8
MODEL = LinearModel.of(
    [[1.0, PERIOD], [-0.2 * PERIOD, 1.0]], [[PERIOD**2 / 2], [PERIOD]], PERIOD, [0.01, -0.02]
)
STILL = LinearModel.of(MODEL.A, MODEL.B, PERIOD)  # a terminal set lies around a rest
SPEED = Output("speed", [[0.0, 1.0]], [[0.0]], [-0.5], [0.6])
SOFT = Output("place", [[1.0, 0.0]], [[0.0]], [-9.0], [0.3], 50.0, 4.0)
MIXED = Output("mix", [[0.3, 0.2]], [[1.0]], [-0.9], [0.7])
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
    return LinearOptions(**given | options)


def controller_of(case=None, **options):
    """Return the controller of a case."""
    return lti_mpc(STILL if case == "ended" else MODEL, options_of(case, **options))
