"""Systems whose motion is that over a step: forces of springs, dampers and servos at its end."""

from dataclasses import replace
from functools import lru_cache

import casadi as ca

from mbcasadi.model import actuator_slopes, slopes_at_end
from mbcasadi.system.end_of_step import EndOfStep
from mbcasadi.system.members import MEMBERS
from mbcasadi.system.system import System

KEPT = 16
"""Systems that are kept: what is derived from one of them is then derived once."""


@lru_cache(maxsize=KEPT)
def over_steps(system: System, length: float | None, *, forces: bool = True) -> System:
    """Return the system whose dynamics are those of a step of some length, s; see `EndOfStep`.

    A mechanism that was not read from a model, or has none of these forces, is returned as it is,
    unless its dynamics have the length as an input.

    Args:
        system: the mechanism.
        length: of the step, s; None for an input `step` of the dynamics. Rates of stabilisation are
            then those of a step: those per second times its length.
        forces: whether forces of springs, dampers and servos are those at the end.
    """
    carried, given = system.carried, length is None
    acts = forces and carried.tree is not None
    if not (acts or given):
        return system
    make = slopes_fun if acts else no_slopes_fun
    slopes = carried.cached_function(make.__name__, lambda: make(carried))
    if not (given or any(slopes.nnz_out(i) for i in range(2))):
        return system
    at_end = EndOfStep(slopes, length)
    stepped = replace(carried, at_end=at_end, _cache=_members(carried))
    if carried is system:
        return stepped
    return replace(system, at_end=at_end, _carried=stepped, _cache=_members(system))


def slopes_fun(system: System) -> ca.Function:
    """Return (q, v) → (D, K)."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    numbers = system.numbers_at(q)
    D, K = slopes_at_end(numbers.tree, numbers.actuators, q, v)
    return ca.Function("slopes_at_end", [q, v], [D, K], ["q", "v"], ["D", "K"], {"cse": True})


def no_slopes_fun(system: System) -> ca.Function:
    """Return (q, v) → (D, K) of zeros."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    none = ca.SX(system.nv, system.nv)
    return ca.Function("slopes_at_end", [q, v], [none, none], ["q", "v"], ["D", "K"])


def actuator_change(
    system: System, q: ca.SX, motion: tuple[ca.SX, ca.SX], h: ca.SX | float
) -> tuple[ca.SX, ca.SX]:
    """Return (nu,) how the actuators' forces change over a step, and that on the joints, (nv,).

    Args:
        system: that carries its parameters, read from a model.
        q: (nq,) configuration.
        motion: v and a, (nv,).
        h: length of the step, s.
    """
    numbers, (v, a) = system.numbers_at(q), motion
    change, on_joints = ca.SX(system.nu, 1), ca.SX(system.nv, 1)
    for i, slope in enumerate(actuator_slopes(numbers.tree, numbers.actuators, q)):
        if slope is not None:
            moved, gained = h * (slope.row @ (v + h * a)), h * (slope.row @ a)
            change[i] = -slope.stiffness * moved - slope.damping * gained
            on_joints += slope.row.T @ change[i]
    return change, on_joints


def _members(system: System) -> dict[str, ca.Function]:
    """Return the members that are built already; what is derived from them is another's."""
    return {name: system._cache[name] for name in MEMBERS if name in system._cache}
