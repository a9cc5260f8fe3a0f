"""Stiff springs that the law holds at their present deflection."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description.tendons import FixedTendon
from mbcasadi.description.tree import DOF_SIZE, RigidTree
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of

Array = NDArray[np.float64]

LARGEST_SHARE = 0.5
"""Largest damping, as a share of that from which `v_{k+1} = v_k - h damping v_{k-delay}` grows."""

LEAST_DAMPING = 20.0
"""1/s, of the default where no task has a kd."""


@final
@dataclass(frozen=True)
class RigidSprings(Part):
    """Springs that the law holds at their present deflection.

    Between a motor and a load, a spring of the stiffness k lets the motor's force act on the load
    only after the spring has deflected. Read as they stand, the equations say that a motor moves
    the load in this instant through the coupling of the inertias alone, and require forces that
    have nothing to do with its weight. Where the spring's resonance is far above the bandwidth of
    the tasks, the load follows the motor as in the mechanism without the spring, at the deflection
    s that it has now:

        S a + damping S v = 0,   S v = ds/dt.

    The multiplier of the row is what the load takes beyond the spring's present force, so actuator
    forces and motion are those of the mechanism with S v held, whatever the stiffness, the rest
    length and the deflection are. Nothing returns the spring to a place.

    Of a motor of inertia J and a load m behind the spring, the load then accelerates by

        a = a_des / (1 + (r² + damping r)/ω²),   ω² = k (1/J + 1/m),

    r the Laplace variable: ω is their resonance against each other. A task with `kp = w²`, `kd = 2
    w` is stable where `damping > kd` and `ω² > w damping² / (2 damping - 2 kd)`. The default,
    `damping = 2 kd`, allows the softest spring, `ω > kd`. What joints damp themselves adds to it, a
    delay takes from it.

    A task of the motor, such as a posture of joints in front of the spring, is the reverse: the
    force `-m damping ṡ` that slows the deflection pushes the motor along with it, and stiff springs
    are stable where `damping < kd` of that task. With both, damping is between the kd of what is
    behind the springs and that of the joints in front of them, and `PostureTask` has joints in
    front of springs alone.

    Sampled at h with a delay of d ticks, what the law feeds back at the resonance is late by `ω h
    (d + ½)`. From about π/2 on, a quarter of its period, it excites the resonance in place of
    damping it, unless the spring damps itself: such a stiff spring needs a shorter period, or a
    model in which its joint is welded.

    Args:
        joints: whose stiffness counts as rigid, all rates of a joint; coordinates by name in a
            system that is given by equations. Neither too soft for the tasks, `ω > kd`, nor too
            stiff for the period h and d ticks of delay, `ω h (d + ½) < π/2`, ω its resonance.
        tendons: fixed tendons with a stiffness and without a dead band.
        damping: 1/s at which the law slows a deflection down. None for twice the largest kd of the
            tasks, within what the period and the delay permit.

    Raises:
        ProblemError: no spring, one twice, or a negative damping.
    """

    joints: Sequence[str] = ()
    tendons: Sequence[str] = ()
    damping: float | None = None

    def __post_init__(self) -> None:
        require_fields(self)
        for kind in ("joints", "tendons"):
            object.__setattr__(self, kind, tuple(getattr(self, kind)))
        if self.damping is not None:
            require_numbers(damping=self.damping)
        for kind, names in (("joint", self.joints), ("tendon", self.tendons)):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ProblemError(f"{kind} '{twice[0]}' is named twice; expected each spring once")
        if not self.joints and not self.tendons:
            raise ProblemError("no springs; expected joints or tendons by name")

    def bind(self, design: Design) -> Bound:
        """Return the rows that hold the springs.

        Raises:
            ProblemError, UnknownNameError: as in `spring_map`; too large a damping.
        """
        S, largest = spring_map(design.system, self), largest_damping(design)
        if self.damping is not None and self.damping > largest:
            raise ProblemError(
                f"springs with a damping of {self.damping:g} 1/s at a period of {design.period:g} "
                f"s and a delay of {design.delay_ticks} ticks; expected at most {largest:.3g} 1/s"
            )
        kd = max(float(np.max(gains.kd[gains.weight > 0], initial=0.0)) for gains in design.gains)
        usual = min(max(2 * kd, LEAST_DAMPING), largest)
        damping = usual if self.damping is None else self.damping

        def bias(now: Instant) -> ca.SX:
            return damping * (ca.SX(ca.sparsify(ca.DM(S))) @ now.v)

        return Bound("springs", held=S, held_bias=bias)


def largest_damping(design: Design) -> float:
    """Return the largest damping, 1/s, that the period and the delay permit."""
    growing = 2 * np.sin(np.pi / (4 * design.delay_ticks + 2)) / design.period
    return float(LARGEST_SHARE * growing)


def spring_map(system: System, springs: RigidSprings) -> Array:
    """Return the constant map S (k, nv) from rates to those of the deflections.

    Raises:
        UnknownNameError: no such joint, coordinate or tendon.
        ProblemError: one without stiffness, one that an actuator moves, or a tendon whose spring
            has a dead band.
    """
    if system.tree is None:
        return _rows_of_coordinates(system, springs)
    rows = [np.zeros((0, system.nv))]
    joints = {joint.name: joint for joint in system.tree.joints}
    for name in springs.joints:
        require_name_of(system, "joint", name, list(joints))
        joint = joints[name]
        _require_stiffness("joint", name, joint.stiffness, joint.stiffness_poly)
        _require_no_actuator(system, ("joint", "jointinparent"), list(joints).index(name), name)
        rows.append(np.eye(system.nv)[joint.dof : joint.dof + DOF_SIZE[joint.kind]])
    indices = {tendon.name: k for k, tendon in enumerate(system.tree.tendons)}
    fixed = {t.name: t for t in system.tree.tendons if isinstance(t, FixedTendon)}
    for name in springs.tendons:
        require_name_of(system, "fixed tendon", name, list(fixed))
        tendon = fixed[name]
        _require_stiffness("tendon", name, tendon.stiffness, tendon.stiffness_poly)
        _require_no_actuator(system, ("tendon",), indices[name], name)
        rows.append(_row_of_tendon(system.tree, tendon, system.nv))
    return np.vstack(rows)


def _rows_of_coordinates(system: System, springs: RigidSprings) -> Array:
    """Return the rows of coordinates of a system that is given by equations."""
    names = list(system.coordinate_names)
    if springs.tendons:
        raise ProblemError(
            f"'{system.name}' is given by equations and has no tendons; expected coordinates, "
            f"some of {', '.join(names)}"
        )
    for name in springs.joints:
        require_name_of(system, "coordinate", name, names)
    return np.eye(system.nv)[[names.index(name) for name in springs.joints]]


def _row_of_tendon(tree: RigidTree, tendon: FixedTendon, nv: int) -> Array:
    """Return the row (1, nv) of a tendon's length."""
    low, high = tendon.spring_range
    if low < high:
        raise ProblemError(
            f"tendon '{tendon.name}': its spring is slack from {low:g} to {high:g}; expected one "
            "without a dead band, as it cannot be rigid within"
        )
    row = np.zeros((1, nv))
    for joint, coefficient in zip(tendon.joints, tendon.coef, strict=True):
        row[0, tree.joints[joint].dof] += coefficient
    return row


def _require_stiffness(kind: str, name: str, linear: float, further: Sequence[float]) -> None:
    """Raise for a spring without a stiffness."""
    if linear == 0.0 and not any(further):
        raise ProblemError(
            f"{kind} '{name}' has no stiffness; expected one with a spring, which can carry the "
            "load where the law takes it as rigid"
        )


def _require_no_actuator(system: System, kinds: tuple[str, ...], target: int, name: str) -> None:
    """Raise where an actuator acts beside a spring."""
    for actuator in system.actuators:
        if actuator.transmission in kinds and actuator.target == target:
            raise ProblemError(
                f"{kinds[0]} '{name}' is moved by actuator '{actuator.name}' beside its spring, "
                "and would be held against it; expected a spring between motors and loads"
            )
