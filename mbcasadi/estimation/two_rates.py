"""A plan above a law that takes what a robot measures: plans begin with the estimate of a tick."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.two_rates import TwoRates
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimated_law import EstimatedLaw
from mbcasadi.estimation.estimator import Estimator
from mbcasadi.estimation.law_inputs import STATE
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]


@summarised
@dataclass(frozen=True)
class EstimatedTwoRates:
    """A plan, and a law from measurements that follows it; `with_estimator` makes one.

    `codegen.export_two_rates` takes it. A plan begins with the estimate of the last tick, the first
    one with that of the start.

    Attributes:
        plan, references, follow, u0, z0, every, delay: as in `codegen.TwoRates`.
        law: with the estimator in its ticks.
    """

    plan: Controller | HasController
    law: EstimatedLaw
    references: ca.Function
    follow: ca.Function
    u0: Array
    z0: Array
    every: int
    delay: int

    def _summary(self) -> dict[str, object]:
        return {"law": self.law.controller.name, "every": self.every, "delay": self.delay}


def estimated_two_rates(parts: TwoRates, law: EstimatedLaw) -> EstimatedTwoRates:
    """Return two rates whose law is another one, with estimates in place of q and v.

    Raises:
        ProblemError: plans that take q or v from elsewhere than their references.
    """
    plan = parts.plan if isinstance(parts.plan, Controller) else parts.plan.controller
    asked = [name.removeprefix("first_") for name in parts.references.name_out()]
    for name in STATE:
        if name in plan.function.name_in() and name not in asked:
            raise ProblemError(
                f"the plan {plan.name!r} takes {name} that its references do not give; expected "
                "references with an output for it"
            )
    return EstimatedTwoRates(
        plan=parts.plan,
        law=law,
        references=_from_the_start(parts.references, law.estimator),
        follow=parts.follow,
        u0=parts.u0,
        z0=parts.z0,
        every=parts.every,
        delay=parts.delay,
    )


def _from_the_start(references: ca.Function, estimator: Estimator) -> ca.Function:
    """Return the references of a plan that take the start where q is zero: before the first tick.

    A pose is not all zeros behind a tick: where it could be, a unit is never exactly that.
    """
    s = {n: ca.MX.sym(n, references.sparsity_in(n)) for n in references.name_in()}
    given = dict(s)
    if "q" in s:
        none = ca.sumsqr(s["q"]) <= 0
        given["q"] = ca.if_else(none, ca.DM(first_pose(estimator)), s["q"])
    found = references.call([given[name] for name in s])
    return ca.Function(references.name(), [*s.values()], found, [*s], references.name_out())


def first_pose(estimator: Estimator) -> Array:
    """Return q (nq,) of an estimator that starts."""
    f = estimator.function
    values = {name: ca.DM.zeros(f.size_in(name)) for name in f.name_in()}
    values |= {name: ca.DM(x) for name, x in estimator.defaults.items()}
    values |= {name: ca.DM(x) for name, x in estimator.example_inputs().items()}
    values["z"] = ca.DM(estimator.z0)
    values |= {"p": ca.DM(estimator.parameters)} if "p" in values else {}
    return np.array(f(**values)["q"]).ravel()
