"""Stages whose unknowns are forces and accelerations: inverse dynamics over a horizon.

A stage evaluates the problem of an inverse-dynamics controller at its sample,

    u_k = (p, a, lam, w),   r_k = r(p, a, lam, w),   M a = f + B p + Gᵀ lam,   G a + c = 0,
    lower <= g <= upper,    v_{k+1} = v_k + h a,   q_{k+1} = q_k ⊕ (h v_k + c h² a),

and nothing is solved for the motion. With one interval and limits that brake the control is that of
the controller. The masks of p are those of the controller: contacts, then equality constraints.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.controller import InverseDynamicsQP
from mbcasadi.control.inverse_dynamics.stage_problem import UNKNOWNS, StageProblem, stage_problem
from mbcasadi.control.tasks.reference import fill_reference
from mbcasadi.control.tasks.task import Slot
from mbcasadi.description.qp_stages import CONE_ROWS, UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_limits import limits_of_state
from mbcasadi.mpc.ocp.stage_part import StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.system import System
from mbcasadi.system.coordinates import rates


@final
@dataclass(frozen=True)
class StageForces(StagePart):
    """The parts of an inverse-dynamics controller, with its forces and accelerations as unknowns.

    Attributes:
        law: tasks, contacts, limits and regularisation.
        position_limits: "kept" bounds positions and rates of all samples but the given one;
            "braking" has the rows of the controller, which lower them to accelerations.
    """

    law: InverseDynamicsQP
    position_limits: Literal["kept", "braking"] = "kept"

    def __post_init__(self) -> None:
        require_fields(self)

    @property
    def has_forces(self) -> bool:
        """Whether it states the motion and the ranges of actuators by unknowns of its own."""
        return True

    @cached_property
    def problem(self) -> StageProblem:
        """The problem of the controller in all its unknowns."""
        return stage_problem(self.law)

    def slots(self, system: System) -> tuple[Slot, ...]:
        """Return the slices of the controller's reference, and its mask.

        Raises:
            ProblemError: another mechanism than the controller's, or one with a mask of rows.
        """
        if system.carried is not self.law.system or system.mask is not None:
            raise ProblemError(
                f"stages of '{system.name}' with forces of a controller of "
                f"'{self.law.system.name}'; expected the controller's own system, without a mask"
            )
        names = self.law.mask_names
        return (*self.law.slots, Slot("mask", names, ("",) * len(names)))

    def unknowns(self, system: System) -> tuple[str, ...]:
        """Return the names of a, lam and w."""
        sizes = {name: self.problem.function.numel_in(name) for name in UNKNOWNS[1:]}
        named = [f"a.{name}" for name in rates(system).components]
        return (*named, *(f"{k}{i}" for k in ("lam", "w") for i in range(sizes[k])))

    def terms(self, stage: Stage) -> StageTerms:
        """Return cost, equations of motion and rows of a stage."""
        law, function = self.law, self.problem.function
        sizes = [function.numel_in(name) for name in UNKNOWNS[1:]]
        a, lam, w = ca.vertsplit(stage.further, np.cumsum([0, *sizes]).tolist())
        of_ref = [stage.ref[slot.name] for slot in law.slots]
        q, v, p = stage.variables.carried_q, stage.variables.v, stage.variables.u
        ref, mask = ca.vertcat(ca.SX(0, 1), *of_ref), stage.ref["mask"]
        residual, equations, *rows = function(q, v, ref, mask, p, a, lam, w)
        kept = self._kept(stage)
        held = fill_reference(law.slots, {}, law.reference_at(stage.rest()[: law.system.nq]))
        return StageTerms(
            running=[residual],
            rows=[
                *kept.rows,
                Bounded(equations, 0.0, 0.0, name="equations of motion"),
                *self._rows(*rows),
            ],
            given=kept.given,
            x_bounds=kept.x_bounds,
            a=a,
            nominal={
                "mask": np.ones(len(law.mask_names)),
                **{name: held[place] for name, place in law.reference_slices.items()},
            },
        )

    def _kept(self, stage: Stage) -> StageTerms:
        """Return the bounds of positions and rates, where they are kept."""
        if self.position_limits == "braking":
            return StageTerms()
        bound = [each for each in self.law.bound if each.path is not None]
        return limits_of_state(stage, bound)

    def _rows(self, value: ca.SX, lower: ca.SX, upper: ca.SX) -> list[Bounded]:
        """Return the rows of the controller, those of quadratic cones with a rounded apex."""
        about, first = self.problem.about, value.numel() - CONE_ROWS * self.problem.cones
        kept = self.position_limits == "kept"
        positions = {row for each in self.law.bound for row in each.positions} if kept else set()
        rows = []
        for i, row in enumerate(about[:first]):
            if row in positions or (kept and row.kind == "shortfall"):
                continue
            for sign, bound in ((1, lower[i]), (-1, upper[i])):
                if bound.is_constant() and abs(float(bound)) >= UNBOUNDED:
                    continue
                gap = ca.if_else(ca.fabs(bound) < UNBOUNDED, sign * (value[i] - bound), FREE_ROW)
                rows.append(Bounded(gap, 0.0, name=row.name))
        for i in range(first, value.numel(), CONE_ROWS):
            n, t_1, t_2 = ca.vertsplit(value[i : i + CONE_ROWS] - lower[i : i + CONE_ROWS])
            inside = n - ca.sqrt(t_1**2 + t_2**2 + ROUNDED**2)
            rows.append(Bounded(inside, 0.0, name=about[i].limit))
        return rows


FREE_ROW = 1.0
"""Value of a row without a bound at a sample, kept above zero."""

ROUNDED = 1e-3
"""N, distance of a rounded apex from that of its cone."""
