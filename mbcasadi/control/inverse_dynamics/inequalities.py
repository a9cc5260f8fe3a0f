"""Inequality rows of the inverse dynamics: torque limits, friction pyramids, joint limits.

Every row is `lower <= C_p p + C_lam lam + C_w w + C_a a <= upper` with actuator forces p,
multipliers lam, internal contact forces w and accelerations a; each has a name for messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.limits.braking_rule import Tick
from mbcasadi.control.inverse_dynamics.limits.joint_limits import LimitedJoints, acceleration_bounds
from mbcasadi.description import RigidTree
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.linalg import product
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """`lower <= C_p p + C_lam lam + C_w w + C_a a <= upper`.

    The last rows are those of `cones` quadratic cones, see `qp/quadratic_cones.py`.
    """

    C_p: ca.SX
    C_lam: ca.SX
    C_w: ca.SX
    C_a: ca.SX
    lower: ca.SX
    upper: ca.SX
    names: tuple[str, ...]
    cones: int = 0

    def value(self, p: ca.SX, lam: ca.SX, w: ca.SX, a: ca.SX) -> ca.SX:
        """Return the middle of the inequality (m,)."""
        return _middle((self.C_p, self.C_lam, self.C_w, self.C_a), (p, lam, w, a))

    def size(self, p: ca.SX, lam: ca.SX, w: ca.SX, a: ca.SX) -> ca.SX:
        """Return what the middle of the inequality (m,) would be if nothing in it cancelled."""
        absolute = tuple(
            type(C)(ca.fabs(ca.evalf(C))) if C.is_constant() else ca.fabs(C)
            for C in (self.C_p, self.C_lam, self.C_w, self.C_a)
        )
        return _middle(absolute, tuple(ca.fabs(x) for x in (p, lam, w, a)))


def _middle(matrices: tuple[ca.SX, ...], unknowns: tuple[ca.SX, ...]) -> ca.SX:
    """Return the sum of the products."""
    parts = [product(C, x) for C, x in zip(matrices, unknowns, strict=True) if C.nnz()]
    return ca.densify(sum(parts, type(unknowns[0])(matrices[0].shape[0], 1)))


@dataclass(frozen=True)
class JointSums:
    """Rows of summed actuator forces that a single actuator's range cannot express.

    Attributes:
        of_p: (k, nu) row of each sum.
        ranges: (k, 2) N or N m.
        names: what is limited.
    """

    of_p: ca.SX
    ranges: ca.SX
    names: tuple[str, ...]


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts, one below the other; those of cones come last."""
    return Rows(
        C_p=ca.vertcat(*(part.C_p for part in parts)),
        C_lam=ca.vertcat(*(part.C_lam for part in parts)),
        C_w=ca.vertcat(*(part.C_w for part in parts)),
        C_a=ca.vertcat(*(part.C_a for part in parts)),
        lower=ca.vertcat(*(part.lower for part in parts)),
        upper=ca.vertcat(*(part.upper for part in parts)),
        names=tuple(name for part in parts for name in part.names),
        cones=sum(part.cones for part in parts),
    )


class Sizes(NamedTuple):
    """Numbers of actuator forces, multipliers, internal contact forces and accelerations."""

    nu: int
    m: int
    nw: int
    nv: int

    def rows(
        self, names: Sequence[str], lower: ca.SX, upper: ca.SX, cones: int = 0, **matrices: ca.SX
    ) -> Rows:
        """Return rows; matrices that are not given are zero.

        Args:
            names: of the rows.
            lower, upper: bounds.
            cones: number of quadratic cones that the rows are of.
            matrices: by their names in `Rows`.
        """
        k, names_of = len(names), ("C_p", "C_lam", "C_w", "C_a")
        zero = {name: ca.SX(k, size) for name, size in zip(names_of, self, strict=True)}
        return Rows(**(zero | matrices), lower=lower, upper=upper, names=tuple(names), cones=cones)


def torque_rows(
    actuators: ActuatorModel, names: Sequence[str], sizes: Sizes, label: str = ""
) -> Rows:
    """Return `lower <= p <= upper` for each actuator that has a limit.

    Args:
        actuators: their ranges.
        names: of the actuators.
        sizes: of the unknowns.
        label: what bounds the forces beside their range.
    """
    kinds = f"force range, {label}" if label else "force range"
    bounded = [i for i, limited in enumerate(actuators.bounded) if limited]
    return sizes.rows(
        [f"actuator '{names[i]}': {kinds}" for i in bounded],
        actuators.lower[bounded, 0],
        actuators.upper[bounded, 0],
        C_p=ca.SX.eye(sizes.nu)[bounded, :],
    )


def sum_rows(sums: JointSums, sizes: Sizes) -> Rows:
    """Return the limits on summed actuator forces."""
    return sizes.rows(sums.names, sums.ranges[:, 0], sums.ranges[:, 1], C_p=sums.of_p)


def joint_rows(
    joints: LimitedJoints | None,
    state: tuple[ca.SX, ca.SX],
    tick: Tick,
    sizes: Sizes,
) -> Rows:
    """Return the limits of joints as bounds of their accelerations; see `joint_limits.py`.

    Args:
        joints: the limits; None for no row.
        state: q, v at the start of the tick.
        tick: how it advances the state.
        sizes: of the unknowns.
    """
    if joints is None:
        return sizes.rows([], ca.SX(0, 1), ca.SX(0, 1))
    lower, upper = acceleration_bounds(joints, *state, tick)
    return sizes.rows(
        [f"joint '{name}': range" for name in joints.names],
        ca.fmax(lower, -UNBOUNDED),
        ca.fmin(upper, UNBOUNDED),
        C_a=ca.SX.eye(sizes.nv)[list(joints.dofs), :],
    )


def joint_sums(system: System, actuators: ActuatorModel) -> tuple[ActuatorModel, JointSums]:
    """Return the joints' and tendons' limits of summed actuator force.

    A sum with one constant term bounds that actuator's range directly; MuJoCo clips the sum, so
    the range of the force is clipped too. The other sums become rows.
    """
    nu = system.nu
    lower, upper, bounded = ca.SX(actuators.lower), ca.SX(actuators.upper), list(actuators.bounded)
    of_p, ranges, names = [ca.SX(0, nu)], [ca.SX(0, 2)], []
    for label, row, rest, (low, high) in _limited_sums(system, actuators):
        columns = ca.sparsify(row).sparsity().get_col()
        factor = row[columns[0]] if len(columns) == 1 else None
        if factor is not None and factor.is_constant() and rest.is_zero():
            i, ends = columns[0], sorted((low / float(factor), high / float(factor)))
            lower[i] = ca.fmin(ca.fmax(lower[i], ends[0]), ends[1])
            upper[i] = ca.fmin(ca.fmax(upper[i], ends[0]), ends[1])
            bounded[i] = True
        elif columns:
            of_p.append(row)
            ranges.append(ca.horzcat(low - rest, high - rest))
            names.append(f"{label}: summed actuator force")
    limited = replace(actuators, lower=lower, upper=upper, bounded=tuple(bounded))
    return limited, JointSums(ca.vertcat(*of_p), ca.vertcat(*ranges), tuple(names))


def _limited_sums(
    system: System, actuators: ActuatorModel
) -> list[tuple[str, ca.SX, ca.SX, tuple[float, float]]]:
    """Return (label, row over p, force that no actuator owns, range) of each limited sum."""
    tree: RigidTree | None = system.tree
    if tree is None:
        return []
    sums = []
    for joint in tree.joints:
        if joint.force_range is not None:
            row = actuators.moment[joint.dof, :]
            rest = actuators.rest[joint.dof]
            sums.append((f"joint '{joint.name}'", row, rest, joint.force_range))
    for k, tendon in enumerate(tree.tendons):
        if tendon.force_range is None:
            continue
        row = ca.SX(1, system.nu)
        for i, actuator in enumerate(system.actuators):
            if actuator.transmission == "tendon" and actuator.target == k:
                row[i] = float(actuator.gear[0])
        sums.append((f"tendon '{tendon.name}'", row, ca.SX(0), tendon.force_range))
    return sums
