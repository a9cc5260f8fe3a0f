"""Systems with parameters at the entry points of what is built on a system.

Three ways to treat the input p, each a decorator for a function whose first argument is a system:
what is made takes p as well; what is made carries p inside and has its own place for it; or what is
made consists of numbers, and p has those of the model. A system without parameters passes as it is.
"""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import casadi as ca

from mbcasadi.system.parameter_inputs import with_parameter_input
from mbcasadi.system.system import System

P = ParamSpec("P")
R = TypeVar("R")


def takes_parameters(
    make: Callable[Concatenate[System, P], ca.Function],
) -> Callable[Concatenate[System, P], ca.Function]:
    """Return a function that makes a Function with an input p where the system has one."""

    @wraps(make)
    def entry(system: System, *args: P.args, **kwargs: P.kwargs) -> ca.Function:
        function = make(system.carried, *args, **kwargs)
        if system.carried is system or "q" not in function.name_in():
            return function
        return with_parameter_input(function, len(system.parameters))

    return cast(Callable[Concatenate[System, P], ca.Function], entry)


def carries_parameters(
    make: Callable[Concatenate[System, P], R],
) -> Callable[Concatenate[System, P], R]:
    """Return a function that gets the system with its parameters behind the configuration."""

    @wraps(make)
    def entry(system: System, *args: P.args, **kwargs: P.kwargs) -> R:
        return make(system.carried, *args, **kwargs)

    return cast(Callable[Concatenate[System, P], R], entry)


def at_model_values(
    make: Callable[Concatenate[System, P], R],
) -> Callable[Concatenate[System, P], R]:
    """Return a function that gets the system at the model's own numbers.

    For other numbers give it `system.at({...})`.
    """

    @wraps(make)
    def entry(system: System, *args: P.args, **kwargs: P.kwargs) -> R:
        exposed = len(system.parameters) and system.carried is not system
        return make(system.at() if exposed else system, *args, **kwargs)

    return cast(Callable[Concatenate[System, P], R], entry)
