"""Optimal control problems and trajectories from options by name, for tests that vary them."""

from dataclasses import fields, replace

from mbcasadi import mpc
from mbcasadi.mpc.trajectory.initial_state import Start

BOUNDS = {"u_bounds": "u", "du_bounds": "du", "q_bounds": "q", "v_bounds": "v"}
RATES = {"u_rates": "bounds", "rate_weight": "weight"}


def _taken(given, kind, names=None):
    """Return a part of the options that are its fields, or none, and take them away."""
    names = names or {field.name: field.name for field in fields(kind)}
    own = {names[key]: given.pop(key) for key in list(given) if key in names}
    return [kind(**own)] if own else []


def parts_of(given):
    """Return the parts of options by name, and take these away."""
    parts = [*_taken(given, mpc.Cost), *given.pop("tasks", ()), *given.pop("path", ())]
    parts += [replace(row, at_end=True) for row in given.pop("end", ())]
    parts += _taken(given, mpc.StageBounds, BOUNDS)
    return parts + _taken(given, mpc.ContactSchedule)


def problem(system, horizon, period, **given):
    """Return an optimal control problem."""
    parts = parts_of(given)
    return mpc.optimal_control_problem(system, horizon, period, parts, **given)


def trajectory(system, horizon, duration, **given):
    """Return the problem of a trajectory."""
    parts = parts_of(given) + _taken(given, mpc.ControlRate, RATES)
    parts += [mpc.TimeCost(given.pop("time_weight"))] if "time_weight" in given else []
    if "start" in given:
        given["rows"] = given.pop("start")
    start = _taken(given, Start)
    given |= {"start": start[0]} if start else {}
    return mpc.trajectory_problem(system, given.pop("phases", horizon), duration, parts, **given)
