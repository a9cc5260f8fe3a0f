"""Ranges of actuator forces, and of their sums on joints and tendons."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import casadi as ca

from mbcasadi.control.limits.actuator_limits import NAME as FURTHER_LIMITS
from mbcasadi.control.limits.actuator_limits import NO_LIMIT
from mbcasadi.control.tick.design import Design
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.part import Bound, Part
from mbcasadi.description import RigidTree, TuningParameter
from mbcasadi.qp.rows import Row, Rows, Sizes
from mbcasadi.system import System
from mbcasadi.system.actuator_model import ActuatorModel

NAME = "ranges"


@final
@dataclass(frozen=True)
class ActuatorRanges(Part):
    """Ranges of all actuators: those of the model, and `<actuator>.force.lower`, `.upper`.

    What `tuning` says counts beside the actuator's own limits.
    """

    def bind(self, design: Design) -> Bound:
        """Return the ranges as rows."""
        system, names = design.system, design.system.actuator_names
        labels = [(f"{name}.force.lower", f"{name}.force.upper") for name in names]
        is_tuned = "limits" in design.tunable

        def forces(now: Instant) -> Instant:
            actuators, sums = joint_sums(system, now.actuators)
            if is_tuned:
                low, high = (ca.vertcat(*(now.tuning[x[k]] for x in labels)) for k in range(2))
                lower = ca.fmin(ca.fmax(actuators.lower, low), actuators.upper)
                upper = ca.fmax(ca.fmin(actuators.upper, high), actuators.lower)
                bounded = (True,) * len(names)
                actuators = replace(actuators, lower=lower, upper=upper, bounded=bounded)
            return replace(now, actuators=actuators).knowing(NAME, sums)

        def rows(now: Instant, sizes: Sizes) -> list[Rows]:
            further = now.known.get(FURTHER_LIMITS, "")
            kind = f"force range, {further}" if further else "force range"
            return [
                force_ranges(now.actuators, names, sizes, kind),
                sum_rows(now.known[NAME], sizes),
            ]

        tuning = [
            TuningParameter(label, value, -NO_LIMIT, NO_LIMIT)
            for pair in labels
            for label, value in zip(pair, (-NO_LIMIT, NO_LIMIT), strict=True)
        ]
        return Bound(
            NAME,
            tuning=tuple(tuning) if is_tuned else (),
            ordered=tuple(labels) if is_tuned else (),
            forces=forces,
            rows=rows,
        )


@dataclass(frozen=True)
class JointSums:
    """Rows of summed actuator forces that a single actuator's range cannot express.

    Attributes:
        of_p: (k, nu) row of each sum.
        ranges: (k, 2) N or N m.
        about: what is limited.
    """

    of_p: ca.SX
    ranges: ca.SX
    about: tuple[Row, ...]


def force_ranges(
    actuators: ActuatorModel, names: Sequence[str], sizes: Sizes, kind: str = "force range"
) -> Rows:
    """Return `lower <= p <= upper` for each actuator that has a limit.

    Args:
        actuators: their ranges.
        names: of the actuators.
        sizes: of the unknowns.
        kind: what bounds the forces, in words.
    """
    bounded = [i for i, limited in enumerate(actuators.bounded) if limited]
    return sizes.rows(
        [actuator_row(names[i], kind) for i in bounded],
        actuators.lower[bounded, 0],
        actuators.upper[bounded, 0],
        C_p=ca.SX.eye(sizes.nu)[bounded, :],
    )


def actuator_row(name: str, kind: str = "force range") -> Row:
    """Return what a range of an actuator's force is; one that clips the output cannot be soft."""
    limit = f"torque of {name}" if kind == "force range" else f"{kind} of {name}"
    clips = kind == "force range"
    owner = ("actuator", name)
    return Row(f"actuator '{name}': {kind}", limit, "force ranges", owner, may_yield=not clips)


def sum_rows(sums: JointSums, sizes: Sizes) -> Rows:
    """Return the limits on summed actuator forces."""
    return sizes.rows(sums.about, sums.ranges[:, 0], sums.ranges[:, 1], C_p=sums.of_p)


def joint_sums(system: System, actuators: ActuatorModel) -> tuple[ActuatorModel, JointSums]:
    """Return the joints' and tendons' limits of summed actuator force.

    A sum with one constant term bounds that actuator's range directly; MuJoCo clips the sum, so
    the range of the force is clipped too. The other sums become rows.
    """
    nu = system.nu
    lower, upper, bounded = ca.SX(actuators.lower), ca.SX(actuators.upper), list(actuators.bounded)
    of_p, ranges, about = [ca.SX(0, nu)], [ca.SX(0, 2)], []
    for owner, row, rest, (low, high) in _limited_sums(system, actuators):
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
            about.append(_sum_row(owner))
    limited = replace(actuators, lower=lower, upper=upper, bounded=tuple(bounded))
    return limited, JointSums(ca.vertcat(*of_p), ca.vertcat(*ranges), tuple(about))


def _sum_row(owner: tuple[str, str]) -> Row:
    kind, name = owner
    what = "summed actuator force"
    return Row(f"{kind} '{name}': {what}", f"{what} of {name}", "summed forces", owner)


def _limited_sums(
    system: System, actuators: ActuatorModel
) -> list[tuple[tuple[str, str], ca.SX, ca.SX, tuple[float, float]]]:
    """Return (whose, row over p, force that no actuator owns, range) of each limited sum."""
    tree: RigidTree | None = system.tree
    if tree is None:
        return []
    sums = []
    for joint in tree.joints:
        if joint.force_range is not None:
            row = actuators.moment[joint.dof, :]
            rest = actuators.rest[joint.dof]
            sums.append((("joint", joint.name), row, rest, joint.force_range))
    for k, tendon in enumerate(tree.tendons):
        if tendon.force_range is None:
            continue
        row = ca.SX(1, system.nu)
        for i, actuator in enumerate(system.actuators):
            if actuator.transmission == "tendon" and actuator.target == k:
                row[i] = float(actuator.gear[0])
        sums.append((("tendon", tendon.name), row, ca.SX(0), tendon.force_range))
    return sums
