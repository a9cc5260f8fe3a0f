"""How a base leans over a foot so that joints keep off their stops, and motors off their limits.

With feet where they stand and the centre of mass over one of them, an upright base may bring the
roll of a hip to its stop, or load its motor beyond what it gives: the weight is as far from its
axis as the hip is from the middle. There it cannot keep the robot from falling. The pose that is
sought moves the joints by little, and where the base leans those of the legs alone, as the file
asks for no more,

    min |feet|² + |com - way|² + |lean|² + |beyond ranges|² + |beyond loads|² + |joints|²,

by weights of which each is far above the next. Arms that would go beyond their stops stay where
they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from mbcasadi.anatomy.level_feet import small_turn
from mbcasadi.system import GeometryContact, System
from mbcasadi.system.ranges import position_ranges
from mbcasadi.validation.spec.standing_load import StandingLoad

Array = NDArray[np.float64]

STANDS, RANGES, LOADS, JOINTS = 100.0, 30.0, 10.0, 0.3
"""Weights of feet and centre of mass, 1/m; of ranges, 1/rad, and of loads; of joints, 1/rad."""

UPRIGHT, LEANS = 100.0, 0.3
"""Weights of a base that is to be upright, and of one that may lean, 1/rad."""

OFF, LOADED = 0.05, 0.8
"""Of its range, that a joint keeps from its stops; of what an actuator gives, that it may carry:
the rest balances, and carries what the model does not know."""

LEAST, MOST = 0.01, 0.3
"""Rad, of a lean that is worth it, and beyond which it is none: a motor that does nothing at rest
does not balance."""

NEARER = 1e-6
"""Rad, that a joint is nearer to its stop than at the start, or share of a load, where it counts.
"""

STILL = 1e-9
"""Rad, by which joints of arms may move where they are to stay: an interval has to have a length.
"""

STEPS = 50
"""Evaluations of the pose at most."""


class PoseOver(NamedTuple):
    """A pose that was sought.

    Attributes:
        there: whether feet and centre of mass are where they are to be.
        nearer: by how much joints within `OFF` of a stop are nearer to it than at the start, rad.
        load: by how much a load is beyond `LOADED`, of the actuator's strength.
        overloaded: actuators that are to carry more than they can.
        lean: (2,) of the base about the world's x and y, rad.
    """

    there: bool
    nearer: float
    load: float
    overloaded: tuple[str, ...]
    lean: Array

    @property
    def is_right(self) -> bool:
        """Whether joints keep off stops and motors off limits, or no such pose was found."""
        return not self.there or max(self.nearer, self.load) < NEARER


@dataclass(frozen=True, eq=False)
class Stance:
    """A robot on its feet, some of which carry it.

    Attributes:
        system: with a floating base.
        q: (nq,) pose in which all feet stand.
        base: its body.
        feet: bodies that stay where they are.
        carry: contacts of those that carry.
    """

    system: System
    q: Array
    base: str
    feet: Sequence[str]
    carry: Sequence[GeometryContact]

    def lean_over(self, way: Array) -> PoseOver:
        """Return the pose with the centre of mass a way (2,), m, aside; upright where it can be."""
        upright = self.pose_over(way, UPRIGHT)
        if not upright.is_right:
            leaning = self.pose_over(way, LEANS)
            if leaning.there and LEAST < np.abs(leaning.lean).max() < MOST:
                return leaning
        return upright._replace(lean=np.zeros(2))

    def pose_over(self, way: Array, level: float) -> PoseOver:
        """Return the pose that was found with a weight of the base's lean, 1/rad.

        Ranges and loads count where the base may lean.
        """
        rest, counts = np.zeros(self.system.nv), level < UPRIGHT
        stiff = np.where(self._of_legs | (not counts), JOINTS, STANDS)
        begin, over = self._poses(self.q), self._mass(self.q) + np.array([*way, 0.0])

        def stand(at: Array) -> Array:
            here = self._poses(at)
            errors = [here[name][0] - begin[name][0] for name in self.feet]
            errors += [small_turn(begin[name][1], here[name][1]) for name in self.feet]
            return np.concatenate([*errors, self._mass(at) - over])

        def lean(at: Array) -> Array:
            return small_turn(begin[self.base][1], self._poses(at)[self.base][1])

        def residual(move: Array) -> Array:
            at = self._moved(move)
            parts = [STANDS * stand(at), level * lean(at), stiff * move[6:]]
            if counts:
                parts += [RANGES * self._near_stops(at), LOADS * self._load.excess(at, LOADED)]
            return np.concatenate(parts)

        def least(arms: float) -> Array:
            """Return the best pose with joints of arms moved by so much at most, rad."""
            most = np.full(self.system.nv, np.inf)
            most[6:][~self._of_legs] = arms
            bounds = (-most, most)
            found = scipy.optimize.least_squares(residual, rest, bounds=bounds, max_nfev=STEPS)
            return self._moved(found.x)

        found = least(np.inf)
        if self._has_arms_beyond_stops(found):
            found = least(STILL)
        beyond = self._load.excess(found) > NEARER
        return PoseOver(
            there=bool(np.abs(stand(found)).max() < LEAST),
            nearer=float((self._near_stops(found) - self._near_stops(self.q)).max()),
            load=float(self._load.excess(found, LOADED).max(initial=0.0)),
            overloaded=tuple(np.array(self.system.actuator_names)[beyond].tolist()),
            lean=lean(found)[:2],
        )

    @cached_property
    def _load(self) -> StandingLoad:
        return StandingLoad(self.system, self.carry)

    @cached_property
    def _of_legs(self) -> NDArray[np.bool_]:
        """Whether each joint moves a foot (nv - 6,)."""
        frames = [self.system.frame(name, "body") for name in self.feet]
        moves = [np.abs(np.array(frame.jacobian(self.q))).max(axis=0) for frame in frames]
        return np.asarray(np.max(moves, axis=0)[6:] > 0.0)

    def _has_arms_beyond_stops(self, at: Array) -> bool:
        """Whether a joint that moves no foot is beyond its range: loads say nothing there.

        Legs may be. By how much tells that the base has to lean.
        """
        low, high = position_ranges(self.system)
        tree = self.system.tree
        assert tree is not None  # of a system that is read from a model
        arms = [
            joint.qpos
            for joint in tree.joints
            if joint.kind in ("hinge", "slide") and not self._of_legs[joint.dof - 6]
        ]
        return bool(np.any((at[arms] < low[arms] - NEARER) | (at[arms] > high[arms] + NEARER)))

    def _poses(self, at: Array) -> dict[str, tuple[Array, Array]]:
        names = (self.base, *self.feet)
        found = {name: self.system.frame(name, "body").pose(at)[:2] for name in names}
        return {name: (np.array(p).ravel(), np.array(R)) for name, (p, R) in found.items()}

    def _mass(self, at: Array) -> Array:
        center = self.system.center_of_mass(at, np.zeros(self.system.nv))[0]
        return np.array(center, dtype=float).ravel()

    def _moved(self, move: Array) -> Array:
        return np.array(self.system.integrate(self.q, move), dtype=float).ravel()

    def _near_stops(self, at: Array) -> Array:
        """Return how far joints are within `OFF` of their stops (nq,), rad."""
        low, high = position_ranges(self.system)
        off = OFF * np.where(np.isfinite(high - low), high - low, 0.0)
        return np.maximum(0.0, np.maximum(low + off - at, at - high + off))
