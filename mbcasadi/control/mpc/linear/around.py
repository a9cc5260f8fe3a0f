"""A controller of deviations as one of the measured state: the same law with other inputs."""

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca

from mbcasadi.description import LeastDistanceStages

Inwards = Callable[[dict[str, Any]], list[Any]]
Outwards = Callable[[Any], Any]

SOLUTION = 5
"""Number of inputs of `finish` that come from `build` and the solver."""


def around_stages(
    inner: LeastDistanceStages, sizes: Mapping[str, int], own: Inwards, control: Outwards
) -> LeastDistanceStages:
    """Return stages with other inputs and another control.

    Args:
        inner: the stages of deviations.
        sizes: of the new inputs.
        own: gives the old inputs from the new ones.
        control: gives the new control from the old one.
    """
    kind: Any = ca.SX if inner.build.is_a("SXFunction") else ca.MX
    given = {name: kind.sym(name, size) for name, size in sizes.items()}
    mine = own(given)
    outputs = inner.build.call(mine)
    build = ca.Function("build", list(given.values()), outputs, list(given), inner.build.name_out())
    names = inner.finish.name_in()[-SOLUTION:]
    found = {name: kind.sym(name, inner.finish.numel_in(name)) for name in names}
    u, *rest = inner.finish.call([*mine, *found.values()])
    finish = ca.Function(
        "finish",
        [*given.values(), *found.values()],
        [control(u), *rest],
        [*given, *found],
        inner.finish.name_out(),
    )
    return LeastDistanceStages(build, finish)


def around_function(
    inner: ca.Function, sizes: Mapping[str, int], own: Inwards, control: Outwards = lambda u: u
) -> ca.Function:
    """Return a Function with other inputs and another first output.

    Args:
        inner: the Function of deviations.
        sizes: of the new inputs.
        own: gives the old inputs from the new ones.
        control: gives the new first output from the old one.
    """
    given = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    u, *rest = inner.call(own(given))
    outputs = [control(u), *rest]
    return ca.Function(inner.name(), list(given.values()), outputs, list(given), inner.name_out())
