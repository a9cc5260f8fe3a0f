"""Names of the options of a step on the manifold, for functions that pass them on."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from mbcasadi.dynamics.formulations import option_names
from mbcasadi.mpc.integrators.step import step_fun
from mbcasadi.shapes import require_name


def require_step_options(door: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise `UnknownNameError` for an option that neither the function nor a step has.

    Args:
        door: the public function that was called with these keywords beside its own.
        options: the keywords.
    """
    own = [*_keywords(door), *_keywords(step_fun)]
    for name in options:
        valid = [*own, *option_names(options.get("formulation", "projection"))]
        require_name(f"option of {door.__name__}", name, valid)


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
