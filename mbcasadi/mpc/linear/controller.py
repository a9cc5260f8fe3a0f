"""Linear MPC as a controller: its Function, its reference, and what its plans violate."""

from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.control.law_interface.control_law import ControlLaw
from mbcasadi.control.law_interface.control_solution import ControlSolution, solve_by_name
from mbcasadi.control.regulators.feedback import held_setpoint
from mbcasadi.control.regulators.linearization import Linearization
from mbcasadi.control.tasks.reference import Slices, fill_reference, merged
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.linear.condensing import CondensedForm
from mbcasadi.mpc.linear.model import Array
from mbcasadi.mpc.linear.problem import LinearProblem
from mbcasadi.mpc.linear.violations import Violation, hard_violations, soft_violations
from mbcasadi.mpc.lq.sparse import SparseQP
from mbcasadi.shapes import column, real_array
from mbcasadi.short_text import summarised

BY_SAMPLE = ("x", "q", "v")
"""Names of the slices that a preview has for each sample."""


@final
@summarised
@dataclass(frozen=True)
class LinearMPC(ControlLaw):
    """A linear MPC controller; `export_c` accepts it, and `validate` that of a mechanism.

    Attributes:
        controller: (x0, ref, z) → (u, z_next, status, flags, residual), or with (q, v) in place of
            x0.
        problem, condensed: the problem with states and without.
        slots: the slices of the reference.
        sparse, unknowns: the QP with states, and its solution, (inputs) → (w); None in the
            condensed form.
        forces: slices of w with the multipliers δλ of each interval; none where they are no
            unknowns.
        parameters: (inputs) → (θ) of the condensed problem.
        rest: the equilibrium of a law of a mechanism, which its reference has by default; None
            where x is measured, with a reference of zero.
    """

    problem: LinearProblem
    condensed: CondensedForm
    parameters: ca.Function
    sparse: SparseQP | None = None
    forces: tuple[slice, ...] = ()
    unknowns: ca.Function | None = None
    rest: Linearization | None = None

    def _summary(self) -> dict[str, object]:
        return {
            "name": self.controller.name,
            "horizon": self.problem.horizon,
            "period": self.period,
            "reference": {slot.name: slot.size for slot in self.slots},
            "form": "condensed" if self.sparse is None else "sparse",
        }

    @property
    def nominal_reference(self) -> Array:
        """Reference (nref,) of the problem as it was made, its setpoint among it."""
        return self.reference()

    def example_inputs(self) -> dict[str, Array]:
        """Return the equilibrium, or a state of zeros, and the reference of the design."""
        if self.rest is None:
            return {"ref": self.reference()}
        return {"q": self.rest.q, "act": self.rest.act, "ref": self.reference()}

    @checked
    def reference(self, values: Slices | None = None, /, **slices: ArrayLike) -> Array:
        """Return the reference with these slices; the rest is the equilibrium, or zero.

        With a preview, `x`, or `q` and `v` of a mechanism, have one row for each sample 1 … N,
        `reference(x=(N, nx), u=(nu,))`; a single row holds at all samples.

        Args:
            values: by name, `{"setpoint.q": [0.1, 0.2]}`.
            slices: the same as keywords, with `_` for dots: `setpoint_q=[0.1, 0.2]`.

        Raises:
            UnknownNameError: no such slice; the message lists those there are.
            ProblemError: more or fewer rows than the horizon has samples.
            ShapeError: a slice of a wrong size.
        """
        given = self._by_sample(merged(values, slices))
        return fill_reference(self.slots, given, self._default())

    @checked
    def reference_at(self, q: ArrayLike, values: Slices | None = None) -> Array:
        """Return the reference that holds the pose q at rest, with the control that it needs.

        Args:
            q: (nq,) pose of equilibrium of a mechanism.
            values: slices with another value, by name.

        Raises:
            ProblemError: the law measures x and has no pose, or nothing holds the pose at rest.
            UnknownNameError, ShapeError: as in `reference`.
        """
        if self.rest is None:
            raise ProblemError(
                f"'{self.controller.name}' measures x and has no pose; give reference(x=...)"
            )
        held = self._by_sample(self._short_names(held_setpoint(self.rest, q)))
        return fill_reference(
            self.slots, self._by_sample(values or {}), fill_reference(self.slots, held)
        )

    @checked
    def solve(
        self, *measured: ArrayLike, ref: ArrayLike | None = None, z: ArrayLike | None = None
    ) -> ControlSolution:
        """Return the controller's output, with its plan: `solve(q, v, ref)`, `solve(x0, ref)`.

        Args:
            measured: the measured inputs in their order, q and v, x0 or y; then `ref`, if it is
                not given by name.
            ref: (nref,) reference; the equilibrium, or zero, by default.
            z: (nz,) state; default: `z0`.

        Raises:
            ProblemError: another number of inputs.
            ShapeError: a wrong shape. NaN and infinity do not raise: they give status 3.
        """
        names = [name for name in self.function.name_in() if name not in {"ref", "z"}]
        expected = names if ref is not None else [*names, "ref"]
        if not len(names) <= len(measured) <= len(expected):
            raise ProblemError(
                f"{len(measured)} inputs; expected {', '.join(names)}"
                + ("" if ref is not None else ", and ref if it is not the default")
            )
        inputs = {"ref": self._default() if ref is None else ref, "z": z}
        inputs |= dict(zip(expected, measured, strict=False))
        return solve_by_name(self.controller, inputs)

    def _default(self) -> Array:
        """Return the reference of the equilibrium, or zero."""
        if self.rest is None:
            return np.zeros(self.nref)
        rest = self.rest
        held = {"setpoint.q": rest.q, "setpoint.v": rest.v, "setpoint.u": rest.u}
        return fill_reference(self.slots, self._by_sample(self._short_names(held)))

    def _short_names(self, held: Slices) -> Slices:
        """Return a setpoint by the names of a preview, which has q and v of each sample."""
        if not self.problem.preview:
            return held
        short = {"setpoint.q": "q", "setpoint.v": "v"}
        return {short.get(name, name): value for name, value in held.items()}

    def _by_sample(self, values: Slices) -> Slices:
        """Return the slices of each sample, where there is a preview."""
        if not self.problem.preview:
            if any(name in BY_SAMPLE and np.ndim(values[name]) > 1 for name in values):
                raise ProblemError(
                    "the law has one setpoint; make it with preview=True for a schedule"
                )
            return values
        N, entries = self.problem.horizon, {}
        for name, value in values.items():
            if name not in BY_SAMPLE:
                entries[name] = value
                continue
            rows = real_array(name, value)
            rows = np.tile(rows, (N, 1)) if rows.ndim < 2 else rows
            if len(rows) != N:
                raise ProblemError(
                    f"the schedule of {name} has {len(rows)} samples, the horizon {N}; expected "
                    f"one row for each of the samples 1 to {N}, again at each tick"
                )
            entries |= {f"{name}{k + 1}": row for k, row in enumerate(rows)}
        return entries

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
