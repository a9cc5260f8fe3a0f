"""A plan and a law that follows it, as data: what an export of two rates is made of."""

from typing import Protocol, runtime_checkable

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.controller import Controller, HasController

Array = NDArray[np.float64]


@runtime_checkable
class TwoRates(Protocol):
    """A plan and a law that follows it, as `mpc.whole_body_mpc` makes them.

    Attributes:
        plan: the slow law, with an output `plan`.
        law: the fast one.
        references: any of (q, v, command, plan, age, t, z) → inputs of the plan by name, with or
            without `first_` before it, z_next; once a plan. `plan` is the one that acts at t, `age`
            seconds after its moment. An input with the name of an output of the law is that of the
            last tick, zero before the first: a disturbance that it has learned.
        follow: (plan, age, t) → inputs of the law by name, `age` seconds after the plan's moment.
        u0, z0: the plan to begin with, and the first z of `references`.
        every: ticks of the law in one of the plan.
        delay: periods of the plan from its measurement to the moment at which it acts.
    """

    @property
    def plan(self) -> Controller | HasController: ...  # noqa: D102
    @property
    def law(self) -> Controller | HasController: ...  # noqa: D102
    @property
    def references(self) -> ca.Function: ...  # noqa: D102
    @property
    def follow(self) -> ca.Function: ...  # noqa: D102
    @property
    def u0(self) -> Array: ...  # noqa: D102
    @property
    def z0(self) -> Array: ...  # noqa: D102
    @property
    def every(self) -> int: ...  # noqa: D102
    @property
    def delay(self) -> int: ...  # noqa: D102
