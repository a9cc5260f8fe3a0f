"""An estimator in front of a law, or of a plan and its law."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.description.two_rates import TwoRates
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimated_law import EstimatedLaw, estimated_law
from mbcasadi.estimation.estimator import Estimator
from mbcasadi.estimation.law_inputs import STATE
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

BLIND_TIME = 0.05
"""s for which an estimate without its measurements still controls."""

SAMPLE_AGE = "sample_age"
"""Name of an estimator's `age` in a tick that follows a plan, which has an age too."""


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


@overload
def with_estimator(
    law: Controller | HasController,
    estimator: Estimator,
    *,
    observers: Sequence[ca.Function] = (),
    blind: float = BLIND_TIME,
    delay: int | None = None,
    name: str | None = None,
) -> EstimatedLaw: ...


@overload
def with_estimator(
    law: TwoRates,
    estimator: Estimator,
    *,
    observers: Sequence[ca.Function] = (),
    blind: float = BLIND_TIME,
    delay: int | None = None,
    name: str | None = None,
) -> EstimatedTwoRates: ...


@checked
def with_estimator(
    law: Controller | HasController | TwoRates,
    estimator: Estimator,
    *,
    observers: Sequence[ca.Function] = (),
    blind: float = BLIND_TIME,
    delay: int | None = None,
    name: str | None = None,
) -> EstimatedLaw | EstimatedTwoRates:
    """Return the law whose q and v are those of the estimator.

    Its Function is (y, valid, …, dt, …, ref, tuning, p, t, mask, z) → (u, z_next, status, flags,
    residual, …, q, v, deviation, estimate_residual, estimate_status): inputs of the estimator, then
    those of the law without q and v; outputs of the law, then the estimate.

    - The estimator's `mask` is the law's in the tick before, by the names of contacts; one for a
      contact that the law does not have. A law without contacts leaves `mask` an input.
    - The estimator's `u` is the control that acted until now.
    - `status`: the law's. `estimate_status`: the estimator's. `flags`: the law's, with `GATED`
      where the estimator rejected a measurement, and `UNSURE` where its status is not 0, or was 3
      or 4 within the last `2 blind` seconds.
    - An estimator of status 3, whose input is not valid, predicts: the law goes on for `blind`
      seconds. Then, and for as long after a status of 4, the law gets NaN for q and v, and gives
      its own safe output for bad input. The count goes down while the status is less.

    Where the law has no status of its own, it is 0 or 3, and u then a constant within the limits.

    Args:
        law: any controller that takes q or v; or a plan and its law, `mpc.whole_body_mpc` for
            example: the estimator runs in each tick, and plans begin with its last estimate.
        estimator: of the same model, with the law's period.
        observers: Functions that run behind the estimator, in their order, with a `z` of their own:
            `momentum_observer`, `residual_forces`, `contact_probability`. Inputs are what was found
            before by its name, `schedule` is the law's mask, others are inputs of the whole. A
            `probability` is the estimator's mask in the next tick, `f` the law's `f_measured`. A
            law takes other inputs from them by their names.
        blind: s.
        delay: ticks from a measurement to the moment at which u acts; the law's by default.
        name: a C identifier; that of the law with `_from_sensors` by default.

    Raises:
        ProblemError: law, estimator and observers are not of one model, or of several periods; a
            law that takes neither q nor v.
    """
    others = (estimator, tuple(observers), blind, delay, name)
    if not isinstance(law, TwoRates):
        return estimated_law(law, *others)
    ticks = estimated_law(law.law, *others, renamed={"age": SAMPLE_AGE})
    return estimated_two_rates(law, ticks)


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
