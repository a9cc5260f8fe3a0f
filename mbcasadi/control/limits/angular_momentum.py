"""A bound of the angular momentum about the centre of mass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.limits.predicted_motion import predicted
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import TuningParameter
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Bounded, Row, Rows, Sizes, moved_ends
from mbcasadi.shapes import real_array

AXES = ("x", "y", "z")


@final
@dataclass(frozen=True)
class AngularMomentumLimit(Part):
    """The angular momentum L about the centre of mass stays within `|L_i| <= largest_i`.

    With `L = A_G v` (D. Orin, A. Goswami, S. Lee, Centroidal dynamics of a humanoid robot,
    Autonomous Robots 35, 2013), the row is `|L + h (A_G a + Ȧ_G v)| <= largest` at the end of the
    tick of length h in which the control acts. What is beyond returns as fast as actuators allow.

    Attributes:
        largest: kg m²/s, one number or three for x, y, z in world axes; infinite for no limit.
            `angular_momentum.x` and so on of `tuning`.
    """

    largest: float | Sequence[float]

    def __post_init__(self) -> None:
        require_fields(self)
        array = real_array("largest", self.largest)
        if array.shape not in {(), (3,)} or not np.all(array > 0):
            raise ProblemError(f"largest = {self.largest}; expected one or three positive numbers")

    def bind(self, design: Design) -> Bound:
        """Return the bounds as rows of the accelerations.

        Raises:
            UnknownNameError: the system has no momentum, such as one given by equations.
        """
        momentum, h = design.system.member("momentum"), design.tick.length
        bounds = np.broadcast_to(real_array("largest", self.largest), (3,))
        kept = np.flatnonzero(np.isfinite(bounds)).tolist()
        names = [f"angular_momentum.{AXES[i]}" for i in kept]
        about = tuple(
            Row(
                f"angular momentum '{AXES[i]}'",
                f"angular momentum along {AXES[i]}",
                "angular momentum",
                ("angular momentum", AXES[i]),
                "N m",
                np.nan,
            )
            for i in kept
        )

        def angular(now: Instant) -> list[ca.SX]:
            """Return L, A_G and Ȧ_G v, and the largest |L|, of the axes that are bounded."""
            largest = ca.vertcat(
                *(now.tuning.get(name, bounds[i]) for name, i in zip(names, kept, strict=True))
            )
            return [*(x[[3 + i for i in kept], :] for x in momentum(now.q, now.v)), largest]

        def rows(now: Instant, sizes: Sizes) -> Sequence[Rows]:
            L, J, bias, largest = angular(now)
            _, L = predicted(L, L, [J @ a + bias for a in now.plans], design.tick)
            lower, upper = ((sign * largest - L) / h - bias for sign in (-1, 1))
            return [sizes.rows(about, lower, upper, C_a=ca.sparsify(J))]

        def path(now: Instant) -> Sequence[Bounded]:
            L, _, _, largest = angular(now)
            return [
                moved_ends(
                    Bounded(L[k], -bounds[i], bounds[i], name=row.name), -largest[k], largest[k]
                )
                for k, (i, row) in enumerate(zip(kept, about, strict=True))
            ]

        tuning = [
            TuningParameter(name, float(bounds[i]), unit="kg m²/s")
            for name, i in zip(names, kept, strict=True)
        ]
        return Bound(
            "angular momentum",
            tuning=tuple(tuning) if "limits" in design.tunable else (),
            positions=about,
            planned=tuple(range(design.system.nv)),
            rows=rows,
            path=path,
        )
