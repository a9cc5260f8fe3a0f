"""A controller with its start and its motion, and what all kinds of controllers need for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.short_text import summarised
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of
from mbcasadi.validation.closed_loop import outer_law
from mbcasadi.validation.closed_loop.outer_law import Planner
from mbcasadi.validation.spec.common import Start
from mbcasadi.validation.spec.limit_tables import Range
from mbcasadi.validation.trial import Trial

Array = NDArray[np.float64]
Exportable = Controller | HasController | ca.Function


class Outer(NamedTuple):
    """A slower law above the controller, what connects them, and its command."""

    law: HasController
    planner: Planner
    command: tuple[float, ...]


@summarised
@dataclass(frozen=True)
class Experiment:
    """A controller, its initial configuration and its reference motion.

    Attributes:
        controller: built for the model.
        q0: (nq,) initial configuration.
        reference: (t) → (nref,), or None where it has none.
        mask: (t) → (nmask,), or None where nothing is switched.
        outer: a slower law above, which gives reference and mask; None where there is none.
    """

    controller: Controller | HasController
    q0: Array
    reference: Callable[[float], Array] | None
    mask: Callable[[float], Array] | None = None
    outer: Outer | None = None

    @property
    def all_laws(self) -> dict[str, Exportable]:
        """The laws to export, by the suffix of their folder."""
        if self.outer is None:
            return {"": self.controller}
        planner = self.outer.planner
        part = planner.controller if isinstance(planner, HasController) else planner.function
        return {"": self.controller, "_mpc": self.outer.law, "_planner": part}

    @checked
    @contextmanager
    def complete(self, trial: Trial) -> Iterator[Trial]:
        """Yield a trial with start and motion; the C of an outer law exists meanwhile."""
        scenario = replace(trial.scenario, mask=self.mask)
        known = replace(trial, reference=self.reference, q0=self.q0, scenario=scenario)
        if self.outer is None:
            yield known
        else:
            with outer_law(*self.outer) as above:
                yield replace(known, scenario=replace(scenario, outer=above))


def start_configuration(start: Start, system: System) -> Array:
    """Return the configuration at the start.

    Raises:
        ProblemError: both a key frame and q are given.
        UnknownNameError: the model has no such key frame.
        ShapeError: q has another size.
    """
    assert system.tree is not None  # `read_mjcf` always gives one
    if start.keyframe is not None and start.q is not None:
        raise ProblemError("start: give keyframe or q, not both")
    if start.q is not None:
        return column("start.q", start.q, system.nq)
    if start.keyframe is not None:
        require_name_of(system, "key frame", start.keyframe, list(system.tree.keyframes))
        return np.array(system.tree.keyframes[start.keyframe], dtype=float)
    return np.array(system.tree.q0, dtype=float)


def override_limits(system: System, limits: Array, overrides: dict[str, Range]) -> Array:
    """Return limits (nu, 2), those of some actuators overridden.

    Raises:
        UnknownNameError: the model has no such actuator.
    """
    result = np.array(limits, dtype=float)
    for name, ends in overrides.items():
        require_name_of(system, "actuator", name, system.actuator_names)
        result[system.actuator_names.index(name)] = ends
    return result
