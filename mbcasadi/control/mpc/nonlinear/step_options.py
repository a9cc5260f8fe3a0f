"""Names of the options that a step on the manifold takes, for doors that pass them on."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mbcasadi.control.mpc.nonlinear.integrators import step_fun
from mbcasadi.dynamics.formulations import option_names
from mbcasadi.shapes import require_name


def require_step_options(door: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise `UnknownNameError` for a name that neither the door, a step nor its formulation takes.

    Args:
        door: that was given these keywords beside its own.
        options: the keywords.
    """
    own = [*_keywords(door), *_keywords(step_fun)]
    for name in options:
        valid = [*own, *option_names(options.get("formulation", "projection"))]
        require_name(f"option of {door.__name__}", name, valid)


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
