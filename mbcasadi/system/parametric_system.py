"""A system with an input p, from one that carries its parameters; and one at numbers for them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import casadi as ca
from numpy.typing import ArrayLike

from mbcasadi.description.parameters import NO_PARAMETERS
from mbcasadi.errors import ProblemError
from mbcasadi.system.frames import FrameFunctions
from mbcasadi.system.functions import Builder
from mbcasadi.system.mechanism import Mechanism
from mbcasadi.system.members import MANIFOLD
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.numbers_at_parameters import with_parameters
from mbcasadi.system.parameter_inputs import fixed, not_physical, with_parameter_input

M = TypeVar("M", bound=Mechanism)


def expose_parameters(system: M, carried: M) -> M:
    """Return a system with the members of one that carries its parameters, p as an input.

    Args:
        system: the mechanism without them.
        carried: the same mechanism with q and p in one column.
    """
    count = len(carried.parameters)

    def exposed(name: str) -> Builder:
        return lambda: with_parameter_input(carried.member(name), count)

    members = {name: exposed(name) for name in carried.builders if name not in MANIFOLD}
    return replace(
        system,
        nc=carried.nc,
        builders={**system.builders, **members},
        mask=carried.mask,
        timed=carried.timed,
        row_names=carried.row_names,
        row_owners=carried.row_owners,
        parameters=carried.parameters,
        _carried=carried,
        _cache={},
    )


def expose_frame(frame: FrameFunctions, count: int) -> FrameFunctions:
    """Return a frame with an input p, from that of a system that carries p.

    Args:
        frame: its Functions take q and p in one column.
        count: size of p.
    """
    functions: dict[str, Any] = {
        part.name: with_parameter_input(function, count)
        for part in fields(frame)
        if isinstance(function := getattr(frame, part.name), ca.Function)
    }
    return replace(frame, carrier=None, **functions)


def system_at(system: M, values: Mapping[str, ArrayLike] | None) -> M:
    """Return the system with numbers for its parameters; see `System.at`."""
    p = system.parameter_values(values)
    wrong = not_physical(system.parameters, p)
    if wrong:
        raise ProblemError(
            f"parameters {', '.join(wrong)}; expected finite numbers: masses above 0, inertias "
            "of distributions of mass (each principal moment at most the sum of the others), "
            "damping and armature of at least 0"
        )
    if not len(system.parameters):
        return system

    def at_values(name: str) -> Builder:
        return lambda: fixed(system.member(name), p)

    changes: dict[str, Any] = {}
    if system.tree is not None:
        numbers = ModelNumbers(system.tree, system.actuators, system.equalities)
        numbers = with_parameters(numbers, system.parameters, p)
        changes = {name: getattr(numbers, name) for name in ("tree", "actuators", "equalities")}
    return replace(
        system,
        **changes,
        builders={name: at_values(name) for name in system.builders},
        parameters=NO_PARAMETERS,
        _carried=None,
        _cache={},
        _frames={},
    )
