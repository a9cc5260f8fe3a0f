"""A controller with its start and its motion, and the inputs of its laws at the start."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.two_rates import TwoRates
from mbcasadi.estimation import with_estimator
from mbcasadi.estimation.with_estimator import BLIND_TIME
from mbcasadi.motion.time_function import TimeFunction
from mbcasadi.short_text import summarised
from mbcasadi.validation.closed_loop import Sensing, outer_law
from mbcasadi.validation.closed_loop.outer_law import OUTER, Command, Planner
from mbcasadi.validation.trial import Trial

Array = NDArray[np.float64]
Inputs = dict[str, Array]
Exportable = Controller | HasController | ca.Function


class Outer(NamedTuple):
    """A slower law above the controller, what connects them, and its command."""

    law: HasController
    planner: Planner
    command: Command

    @property
    def at_start(self) -> Array:
        """The command at t = 0."""
        value = self.command(0.0) if callable(self.command) else self.command
        return np.array(value, dtype=float)


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
        sensors: an estimator, with the errors of what it reads; None where q and v are measured.
        delay: ticks from a measurement to its control, as the estimator takes it.
    """

    controller: Controller | HasController
    q0: Array
    reference: Callable[[float], Array] | None
    mask: Callable[[float], Array] | None = None
    outer: Outer | None = None
    sensors: Sensing | None = None
    delay: int = 0

    @property
    def exported(self) -> Controller | HasController:
        """The controller as C has it: from measurements, where an estimator is given."""
        return self.controller if self.sensors is None else self._estimated(self.controller)

    def _estimated(self, law: Any) -> Any:
        """Return a law, or two rates, behind the estimator."""
        assert self.sensors is not None
        blind = self.sensors.blind or BLIND_TIME
        return with_estimator(law, self.sensors.estimator, blind=blind, delay=self.delay)

    @property
    def all_laws(self) -> dict[str, Exportable]:
        """What to export by the suffix of its folder: the laws, and a reference that moves."""
        if self.outer is None:
            reference = self.moving_reference
            return {"": self.exported} | ({"_reference": reference} if reference else {})
        planner = self.outer.planner
        part = planner.controller if isinstance(planner, HasController) else planner.function
        return {"": self.exported, "_mpc": self.outer.law, "_planner": part}

    @property
    def moving_reference(self) -> ca.Function | None:
        """(t) → (ref), by the law's name and `_reference`; None where nothing moves."""
        if not isinstance(self.reference, TimeFunction):
            return None
        t = ca.SX.sym("t")
        ref = self.reference.function(t)
        law = self.controller
        name = (law if isinstance(law, Controller) else law.controller).name
        if not ca.depends_on(ref, t):
            return None
        return ca.Function(f"{name}_reference", [t], [ref], ["t"], ["ref"], {"cse": True})

    @property
    def two_rates(self) -> TwoRates | None:
        """A plan and the law that follows it, which one export holds; None for other laws."""
        planner = None if self.outer is None else self.outer.planner
        if not isinstance(planner, TwoRates):
            return None
        found: TwoRates = planner if self.sensors is None else self._estimated(planner)
        return found

    @checked
    @contextmanager
    def complete(self, trial: Trial) -> Iterator[Trial]:
        """Yield a trial with start and motion; the C of an outer law exists meanwhile."""
        scenario = replace(trial.scenario, mask=self.mask)
        known = replace(trial, reference=self.reference, q0=self.q0, scenario=scenario)
        known = replace(known, sensors=self.sensors or trial.sensors)
        if self.outer is None:
            yield known
        else:
            with outer_law(*self.outer) as above:
                yield replace(known, scenario=replace(scenario, outer=above))


@checked
def example_inputs(experiment: Experiment) -> dict[str, Inputs]:
    """Return the inputs of each of the experiment's laws at its start, at rest.

    The reference and the mask are those of t = 0; without a mask all entries are on, as in the
    closed loop. Below an outer law both come from its planner. Inputs that are not returned have
    their defaults.

    Args:
        experiment: the controller and its start.

    Returns:
        The inputs by name, by the key of the law in `experiment.all_laws`.
    """
    laws = experiment.all_laws
    if experiment.outer is None:
        start = _inputs_of_function(laws[""], _start(experiment))
        return {suffix: {} if suffix else start for suffix in laws}
    planner = experiment.outer.planner
    of_planner = {
        "q": experiment.q0,
        "command": experiment.outer.at_start,
        "u": planner.u0,
        "z": planner.z0,
    }
    plan = {k: np.array(v, dtype=float) for k, v in planner.function(**of_planner).items()}
    above = {name.removeprefix(OUTER): v for name, v in plan.items() if name.startswith(OUTER)}
    below = {"q": experiment.q0, "ref": plan["ref"], "mask": plan["mask"]}
    known = {"": below, "_mpc": above, "_planner": of_planner}
    return {suffix: _inputs_of_function(law, known[suffix]) for suffix, law in laws.items()}


def _start(experiment: Experiment) -> Inputs:
    known = {"q": experiment.q0}
    if experiment.reference is not None:
        known["ref"] = experiment.reference(0.0)
    function = _function(experiment.exported)
    if experiment.mask is not None:
        known["mask"] = experiment.mask(0.0)
    elif "mask" in function.name_in():
        known["mask"] = np.ones(function.numel_in("mask"))
    return known


def _inputs_of_function(law: Exportable, known: Inputs) -> Inputs:
    names = _function(law).name_in()
    return {name: value.ravel("F") for name, value in known.items() if name in names}


def _function(law: Exportable) -> ca.Function:
    controller = law.controller if isinstance(law, HasController) else law
    return controller if isinstance(controller, ca.Function) else controller.function
