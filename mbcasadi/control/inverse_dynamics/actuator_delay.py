"""The delay that a model's actuators have of their own, in ticks of a controller.

MuJoCo lets a control act `delay` seconds later. The equations take the control that acts; a law
accounts for the delay as for that of its measurements, and both add up.
"""

from math import ceil

from mbcasadi.errors import ProblemError
from mbcasadi.system import System

WHOLE = 1e-6
"""A delay within this relative rounding of a whole number of ticks counts as that number."""


def ticks_of(delay: float, period: float) -> int:
    """Return the ticks of a delay, s; a begun one counts as a whole one."""
    return ceil(delay / period - WHOLE)


def actuator_delay_ticks(system: System, period: float) -> int:
    """Return how many ticks later controls act, by the model; begun ticks count as whole ones.

    Args:
        system: read from a model, or given by equations, which have no delay.
        period: of the controller, s.

    Raises:
        ProblemError: actuators whose controls act in different ticks.
    """
    ticks = {each.name: ticks_of(each.delay, period) for each in system.actuators}
    if len(set(ticks.values())) > 1:
        listed = ", ".join(f"'{each.name}' {1e3 * each.delay:g} ms" for each in system.actuators)
        raise ProblemError(
            f"delays of actuators that differ by ticks of {1e3 * period:g} ms: {listed}; expected "
            "one delay of all actuators"
        )
    return max(ticks.values(), default=0)
