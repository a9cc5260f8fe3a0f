"""Stiff springs that the law holds at their present deflection."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.control.inverse_dynamics.limits.joint_limits import JointLimits
from mbcasadi.description.tendons import FixedTendon
from mbcasadi.description.tree import DOF_SIZE, RigidTree
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import require_numbers
from mbcasadi.system import System
from mbcasadi.system.names_by_kind import require_name_of

if TYPE_CHECKING:
    from mbcasadi.control.inverse_dynamics.options import Setup

Array = NDArray[np.float64]

LARGEST_SHARE = 0.5
"""Largest damping, as a share of that from which `v_{k+1} = v_k - h damping v_{k-delay}` grows."""

LEAST_DAMPING = 20.0
"""1/s, of the default where no task has a kd."""


@dataclass(frozen=True)
class RigidSprings:
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


def spring_map(system: System, springs: RigidSprings | None) -> Array:
    """Return the constant map S (k, nv) from rates to those of the deflections.

    Raises:
        UnknownNameError: no such joint, coordinate or tendon.
        ProblemError: one without stiffness, one that an actuator moves, or a tendon whose spring
            has a dead band.
    """
    if springs is None:
        return np.zeros((0, system.nv))
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


def require_springs(setup: "Setup") -> None:
    """Raise unless the springs exist and their damping is stable.

    Raises:
        ProblemError, UnknownNameError: as in `spring_map`; too large a damping.
    """
    springs = setup.rigid_springs
    if springs is None:
        return
    _ = setup.spring_map
    largest = largest_damping(setup)
    if springs.damping is not None and springs.damping > largest:
        raise ProblemError(
            f"springs with a damping of {springs.damping:g} 1/s at a period of {setup.period:g} s "
            f"and a delay of {setup.delay_ticks} ticks; expected at most {largest:.3g} 1/s"
        )


def largest_damping(setup: "Setup") -> float:
    """Return the largest damping, 1/s, that the period and the delay permit."""
    growing = 2 * np.sin(np.pi / (4 * setup.delay_ticks + 2)) / setup.period
    return float(LARGEST_SHARE * growing)


def spring_damping(setup: "Setup", springs: RigidSprings) -> float:
    """Return the damping of the springs, 1/s."""
    if springs.damping is not None:
        return springs.damping
    kd = max(float(np.max(gains.kd[gains.weight > 0], initial=0.0)) for gains in setup.gains)
    return min(max(2 * kd, LEAST_DAMPING), largest_damping(setup))


def limits_beside_springs(setup: "Setup", limits: JointLimits) -> JointLimits:
    """Return limits of joints that are no springs: nothing moves those that are held.

    Raises:
        ProblemError: a spring is named.
    """
    springs = setup.rigid_springs
    if springs is None:
        return limits
    if limits.joints is not None:
        held = [name for name in limits.joints if name in springs.joints]
        if held:
            raise ProblemError(
                f"joint '{held[0]}' has limits and is a rigid spring, which no actuator moves; "
                "expected limits of other joints"
            )
        return limits
    stops = zip(setup.system.limits.joint_names, setup.system.limits.joint, strict=True)
    ranged = [name for name, ends in stops if np.any(np.isfinite(ends))]
    return replace(limits, joints=tuple(name for name in ranged if name not in springs.joints))


def spring_lengths(setup: "Setup") -> Array:
    """Return the length (k,) of each row in scaled coordinates."""
    rows = setup.spring_map * setup.system.scales.coordinates
    return np.asarray(np.linalg.norm(rows, axis=1))


def spring_rows(setup: "Setup", v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return rows (k, nv) and bias (k,) that hold the springs.

    Args:
        setup: the options.
        v: (nv,) velocity.
    """
    S, springs = ca.SX(ca.sparsify(ca.DM(setup.spring_map))), setup.rigid_springs
    if springs is None:
        return S, ca.SX(0, 1)
    return S, spring_damping(setup, springs) * (S @ v)
