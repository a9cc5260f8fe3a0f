"""Half-spaces that frames do not leave: a step under a swing foot, a table under a hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.limits.braking_rule import braking_bound
from mbcasadi.control.limits.joint_limits import RESERVE, require_reserve
from mbcasadi.control.limits.predicted_motion import predicted
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import TuningParameter
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array, require_positive


@final
@readable_fields
@dataclass(frozen=True)
class HalfSpace(Part):
    """A plane that the origin of a frame stays beyond: `n · x >= offset`, world axes.

    The distance to the plane obeys the rule of all limits of positions, see `braking_rule.py`: an
    approach can be stopped before it, also over a delay.

    Attributes:
        frame: a site, body, geom, or a frame of `System.with_frame`.
        offset: of the plane along its normal, m; `<frame>.half_space.offset` of `tuning`.
        braking: deceleration of an approach that is relied on, m/s².
        normal: (3,) of any length, away from what is kept out.
        kind: of the frame.
        reserve: share of `braking` that is not planned with, as in `JointLimits`.
    """

    frame: str
    offset: float
    braking: float
    normal: ArrayLike = (0.0, 0.0, 1.0)
    kind: str = "site"
    reserve: float = RESERVE

    def __post_init__(self) -> None:
        require_fields(self)
        require_positive(braking=self.braking)
        if not np.isfinite(self.offset):
            raise ProblemError(f"offset = {self.offset}; expected a finite number of metres")
        require_reserve(self.reserve)
        normal = real_array("normal", self.normal)
        if normal.shape != (3,) or not 0 < np.linalg.norm(normal) < np.inf:
            raise ProblemError(f"normal = {normal.tolist()}; expected three numbers, not all zero")

    def bind(self, design: Design) -> Bound:
        """Return the plane as a bound of the acceleration along its normal.

        Raises:
            UnknownNameError: no such frame.
        """
        frame, normal = design.system.frame(self.frame, self.kind), np.asarray(self.normal, float)
        n, entry = ca.DM(normal / np.linalg.norm(normal)), f"{self.frame}.half_space.offset"
        planned, what = (1.0 - self.reserve) * self.braking, "half-space"
        about = Row(f"{what} '{self.frame}'", f"{what} of {self.frame}", f"{what}s")
        about = about._replace(owner=(what, self.frame), unit="m/s²", planned=planned)

        def distance(now: Instant) -> ca.SX:
            return n.T @ ca.SX(frame.pose(now.q)[0]) - now.tuning.get(entry, self.offset)

        def rows(now: Instant, sizes: Sizes) -> Sequence[Rows]:
            J = n.T @ ca.SX(frame.jacobian(now.q))[:3, :]
            bias = n.T @ ca.SX(frame.bias(now.q, now.v))[:3]
            left = distance(now)
            plans = [J @ a + bias for a in now.plans]
            left, rate = predicted(left, J @ now.v, plans, design.tick)
            lower = -braking_bound(left, -rate, planned, design.tick) - bias
            return [sizes.rows([about], lower, ca.SX(UNBOUNDED), C_a=ca.sparsify(J))]

        tuning = TuningParameter(entry, self.offset, -np.inf, unit="m")
        return Bound(
            f"{what} {self.frame}",
            tuning=(tuning,) if "limits" in design.tunable else (),
            positions=(about,),
            planned=tuple(range(design.system.nv)),
            rows=rows,
            path=lambda now: [Bounded(distance(now), 0.0, name=about.name)],
        )
