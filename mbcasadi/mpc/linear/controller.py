"""Linear MPC as a controller: its Function, its reference, and what its plans violate."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.tasks.reference import fill_reference, slot_slices
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.condensing import CondensedProblem
from mbcasadi.mpc.linear.prediction_model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.sparse_form import SparseProblem
from mbcasadi.mpc.linear.violations import Violation, hard_violations, soft_violations
from mbcasadi.shapes import column, real_array


@dataclass(frozen=True)
class LinearMPC:
    """A linear MPC controller; `export_c` accepts it, and `validate` that of a mechanism.

    Attributes:
        controller: (x0, ref, z) → (u, z_next, status, flags, residual), or with (q, v) in place of
            x0.
        problem, condensed: the problem with states and without.
        slots: the slices of the reference.
        sparse, unknowns: the problem with states, and its solution, (inputs) → (w); None in the
            condensed form.
        parameters: (inputs) → (θ) of the condensed problem.
    """

    controller: Controller
    problem: LinearProblem
    condensed: CondensedProblem
    slots: tuple[Slot, ...]
    parameters: ca.Function
    sparse: SparseProblem | None = None
    unknowns: ca.Function | None = None

    @property
    def function(self) -> ca.Function:
        """The controller as one named Function."""
        return self.controller.function

    @property
    def reference(self) -> dict[str, slice]:
        """Slice of the reference by its slot's name."""
        return slot_slices(self.slots)

    @checked
    def ref(self, **values: ArrayLike) -> Array:
        """Return the reference with these slices, zero elsewhere; dots are written as `_`."""
        return fill_reference(self.slots, values)

    @checked
    def schedule(self, **values: ArrayLike) -> Array:
        """Return the reference of a law with a preview, from one row for each sample 1 … N.

        `schedule(x=(N, nx), u=(nu,))`, of a mechanism `schedule(q=(N, nq), v=(N, nv),
        setpoint_u=(nu,))`; a single row holds at all samples. The default is zero.

        Raises:
            ProblemError: no preview, or a schedule that is shorter or longer than the horizon.
            UnknownNameError, ShapeError: as in `ref`.
        """
        N, entries = self.problem.horizon, {}
        if not self.problem.preview:
            raise ProblemError("the law has one setpoint; make it with preview=True for a schedule")
        for name, value in values.items():
            rows = real_array(name, value)
            if name not in {"x", "q", "v"}:
                entries[name] = rows
                continue
            rows = np.tile(rows, (N, 1)) if rows.ndim < 2 else rows
            if len(rows) != N:
                raise ProblemError(
                    f"the schedule of {name} has {len(rows)} samples, the horizon {N}; expected "
                    f"one row for each of the samples 1 to {N}, again at each tick"
                )
            entries |= {f"{name}{k + 1}": row for k, row in enumerate(rows)}
        return fill_reference(self.slots, entries)

    @checked
    def violations(self, *inputs: ArrayLike) -> tuple[Violation, ...]:
        """Return the bounds that the plan of this step violates, each with `in_words`.

        Soft rows with the amount of their slack, for example after an unreachable reference or a
        large push. Where hard rows contradict each other (status 2), those of the nearest plan.

        Args:
            inputs: of the controller, in its order.
        """
        law = self.controller.function
        if len(inputs) != law.n_in():
            raise ProblemError(
                f"{len(inputs)} inputs; expected those of the controller: "
                f"{', '.join(law.name_in())}"
            )
        for i, value in enumerate(inputs):
            column(law.name_in(i), value, law.numel_in(i), finite=False)
        violations = soft_violations(self.controller, self.problem, inputs)
        if violations is not None:
            return violations
        theta = np.array(self.parameters(*inputs)).ravel()
        return hard_violations(self.condensed, theta)
