"""Joints that stay in their ranges over a horizon, or leave them at a price."""

from dataclasses import dataclass, replace
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.mpc.ocp.stage_part import FREE, StagePart, StageTerms
from mbcasadi.qp.rows import Bounded
from mbcasadi.shapes import require_numbers, require_positive
from mbcasadi.short_text import summarised


@final
@summarised
@dataclass(frozen=True)
class JointRanges(StagePart):
    """Slide and hinge joints within the model's ranges, at every sample but the given one.

    A joint that is beyond its range, or that cannot be stopped in it, is a reported slack: where
    the price is above all that pulls at the joint, a range that can be kept holds exactly.
    `JointLimits` among the parts are hard.

    Attributes:
        price: ρ₁ of a distance beyond a range, 1/m or 1/rad, at a sample.
        margin: distance that is kept from the ranges' ends, m or rad.
    """

    price: float
    margin: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(price=self.price)
        require_numbers(margin=self.margin)

    def terms(self, stage: Stage) -> StageTerms:
        """Return the rows.

        Raises:
            ProblemError: a margin that leaves nothing of a range.
        """
        system, q = stage.system, stage.variables.q
        limits, rows, slopes = system.limits, list[Bounded](), dict[int, ca.SX]()
        places = {} if system.tree is None else {joint.name: joint for joint in system.tree.joints}
        for name, (low, high) in zip(limits.joint_names, limits.joint, strict=True):
            if not np.isfinite([low, high]).any():
                continue
            if not high - low > 2 * self.margin:
                raise ProblemError(
                    f"joint '{name}': a margin of {self.margin:g} leaves nothing of its range, "
                    f"{low:g} to {high:g}; expected less than half of it"
                )
            joint = places[name]
            along = np.zeros((1, 2 * system.nv))
            along[0, joint.dof] = 1.0
            slopes[len(rows)] = ca.SX(ca.sparsify(ca.DM(along)))
            ends, label = (low + self.margin, high - self.margin), f"range of {name}"
            rows.append(Bounded(q[joint.qpos], *ends, linear_penalty=self.price, name=label))
        at_end = [replace(row, at_end=True) for row in rows]
        given = dict.fromkeys(range(len(rows)), FREE)
        return StageTerms(rows=[*rows, *at_end], given=given, slopes=slopes)
