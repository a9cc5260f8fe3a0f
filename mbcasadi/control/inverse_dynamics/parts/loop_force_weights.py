"""Forces of equality constraints in the cost: the tension of a rope, the preload of a pin.

The cost `½ Σ r_i (lam_i - lam_ref,i)²` weighs the multipliers of named equality constraints, as
that of contact forces does. What actuator forces and motion leave undetermined is shared as
`load_sharing.py` says and, where it is free, brought to the reference too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.limits.loop_force_limits import AXES
from mbcasadi.control.tick.design import Design, WeighedForce
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array
from mbcasadi.system.names_by_kind import require_name_of


@readable_fields
@dataclass(frozen=True)
class LoopForceWeights:
    """Weights of the forces of equality constraints in the cost.

    Attributes:
        weights: by the name of the constraint, as in `mask_names`: r_i of each of its rows, or one
            for all of them; zero for rows that are not weighed.

    Raises:
        ProblemError: no weights.
    """

    weights: Mapping[str, ArrayLike]

    def __post_init__(self) -> None:
        require_fields(self)
        if not self.weights:
            raise ProblemError("no weights of loop forces; expected some by name")


def weighed_loops(weights: LoopForceWeights, design: Design) -> tuple[WeighedForce, ...]:
    """Return each multiplier with a weight.

    Raises:
        UnknownNameError: no equality constraint of this name.
        ProblemError: weights of another shape, negative, or not finite; none that is positive.
    """
    given, names = weights.weights, design.equality_names
    for name in given:
        require_name_of(design.system, "equality constraint", name, list(names))
    found, first = [], 0
    for name, size in zip(names, design.equality_sizes, strict=True):
        own = real_array(f"weights of '{name}'", given.get(name, 0.0))
        fits = own.shape in {(), (size,)} and bool(np.all(np.isfinite(own)))
        if not fits or np.any(own < 0):
            raise ProblemError(
                f"weights of '{name}' = {own.tolist()}; expected a finite number that is "
                f"not negative, or {size} of them"
            )
        axes = [f".{axis}" for axis in AXES[size]] if size in AXES else [""]
        for k, r in enumerate(np.broadcast_to(own, (size,)).tolist()):
            if r > 0:
                owner, unit = ("loop", name), "N or N m"
                found.append(WeighedForce(name + axes[k], r, owner, unit, first + k, k))
        first += size
    if not found:
        raise ProblemError("all weights of loop forces are zero; expected one that is positive")
    return tuple(found)
