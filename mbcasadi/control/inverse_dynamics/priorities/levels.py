"""The levels of a controller: which rows belong to each, in units in which their strengths compare.

The unknown is `ỹ = D (y - y_ref)` of the actuator forces and internal forces `y = (p, w)`, with
`D² ` the regularisation's weights over its share of the tasks' cost: a unit of ỹ is an acceleration
`(aᵀ M a)^½ = 1`. A row of a level is divided by its usual length in the same metric, so its
strength is about one in usual poses, whatever the units of the model are.

Soft rows have their price in the first level: their slacks are unknowns w, each with a row of its
own there. So the first level trades them against its tasks, and no later level changes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.whitening import LeastDistance, Whitened

Array = NDArray[np.float64]

LEAST_WEIGHT = 1e-150
"""Stands for zero in a denominator: a level whose weights are all zero."""

FORCES = "forces"
"""Name of the level of the forces in the cost, of contacts and of loops."""


@dataclass(frozen=True)
class Level:
    """One level.

    Attributes:
        name: of its tasks.
        rows: numbers of its rows among those of all tasks; none for the forces.
        slacks: number of soft rows whose price it pays.
    """

    name: str
    rows: tuple[int, ...]
    slacks: int = 0

    @property
    def is_forces(self) -> bool:
        """Whether it is the level of the forces in the cost."""
        return not self.rows


class LevelRows(NamedTuple):
    """The residual `A ỹ + b` of a level, to be zero in the metric of `weight`.

    Attributes:
        A: (k, n) rows of usual length one; zero where the weight is zero. Slacks are the last.
        b: (k,).
        weight: (k,) the largest of which is one.
        scale: (k,) what the rows were multiplied by.
    """

    A: ca.SX
    b: ca.SX
    weight: ca.SX
    scale: ca.DM


def levels_of(setup: Setup, slacks: int = 0) -> tuple[Level, ...]:
    """Return the levels of a controller, first to last, without the regularisation.

    Args:
        setup: the options.
        slacks: number of soft rows, whose price is in the first level.
    """
    counts = [len(task.components(setup.system)) for task in setup.tasks]
    starts = np.concatenate([[0], np.cumsum(counts)])
    names = [task.name for task in setup.tasks]
    levels: list[Level] = []
    if not setup.levels:
        return ()
    for members in setup.levels:
        places = [names.index(name) for name in members]
        rows = tuple(int(i) for k in places for i in range(starts[k], starts[k + 1]))
        levels.append(Level(" + ".join(members), rows))
    levels[0] = replace(levels[0], slacks=slacks)
    return (*levels, Level(FORCES, ())) if setup.has_weighed_forces else tuple(levels)


def unit_weights(setup: Setup, scales: ProblemScales) -> ForceWeights:
    """Return `D²` of the actuator forces (nu,) and of the internal forces."""
    share, weights = slack_weight(setup, scales), scales.force_weights
    return ForceWeights(weights.actuators / share, weights.internal / share)


def slack_weight(setup: Setup, scales: ProblemScales) -> float:
    """Return the regularisation's share of the tasks' cost: the weight of ỹ², of a slack too."""
    return float(np.mean(sum(setup.torque_weights))) * scales.task**2


def unit_coordinates(setup: Setup, qp: CondensedProblem) -> Whitened:
    """Return the substitution `y = y_ref + D⁻¹ ỹ`."""
    weights, kind = unit_weights(setup, qp.scales), type(qp.condensed.t)
    of_w = qp.problem.contacts.of_w
    root = ca.DM(np.sqrt(weights.actuators))
    has_cones = qp.problem.rows.cones > 0
    if setup.has_weighed_forces or setup.soft or has_cones:  # a level couples all unknowns
        root = ca.vertcat(root, ca.DM.ones(of_w.shape[1]) * weights.internal**0.5)
    y_ref = ca.vertcat(qp.problem.p_ref, ca.DM.zeros(of_w.shape[1]))
    return Whitened(ca.densify(y_ref), kind(ca.diag(1 / root)), weights.internal, kind(0))


def level_values(
    setup: Setup,
    levels: Sequence[Level],
    qp: CondensedProblem,
    units: Whitened,
    hard: LeastDistance,
) -> dict[str, ca.SX]:
    """Return the numbers of all levels and of the hard rows over ỹ, by name."""
    values = {"level.C": hard.A_qp, "level.lower": hard.lba, "level.upper": hard.uba}
    for k, level in enumerate(levels):
        rows = level_rows(setup, qp, level, units)
        own = type(rows.weight)(0, 1) if level.is_forces else rows.weight * rows.scale**2
        values |= {
            f"level{k}.A": rows.A,
            f"level{k}.b": rows.b,
            f"level{k}.weight": rows.weight,
            f"level{k}.own_weight": ca.densify(own),
        }
    return values


def force_level_weights(setup: Setup) -> Array:
    """Return the weights of the forces in the cost (k,) over the largest one."""
    weights = np.array([each.weight for each in setup.weighed_forces])
    return np.asarray(weights / np.max(weights))


def level_rows(setup: Setup, qp: CondensedProblem, level: Level, units: Whitened) -> LevelRows:
    """Return the residual of a level at a state."""
    condensed, tasks = qp.condensed, qp.problem.tasks
    p_ref = qp.problem.p_ref
    if level.is_forces:
        F, f = qp.forces.map(condensed)
        counts = force_level_weights(setup) > 0
        scale = ca.DM(counts * qp.scales.contact)
        missing = linalg.product(F[:, : p_ref.numel()], p_ref) + f - qp.forces.ref
        weight = type(f)(ca.DM(force_level_weights(setup)))
        return LevelRows(_scaled(F, scale, units), ca.densify(scale * missing), weight, scale)
    rows = list(level.rows)
    J, offset = tasks.J[rows, :], tasks.offset[rows, 0]
    scale = ca.DM(1 / qp.scales.reach[rows])
    weight = ca.densify(type(offset)(tasks.weight)[rows, 0])
    price = slack_weight(setup, qp.scales)
    (relative,) = in_scalars(
        "level_weights",
        lambda k: _relative_weights(k["weight"], scale, price, level.slacks),
        {"weight": weight},
    )
    of_p = linalg.product(J, condensed.T)
    missing = linalg.product(J, condensed.t + linalg.product(condensed.T, p_ref)) + offset
    counts = relative[: len(rows), 0] > 0
    A = ca.repmat(counts, 1, units.L_inv.shape[0]) * _scaled(of_p, scale, units)
    of_slacks = np.eye(level.slacks, A.shape[1], k=p_ref.numel())  # the first unknowns behind p
    return LevelRows(
        ca.densify(ca.vertcat(A, ca.DM(of_slacks))),
        ca.densify(ca.vertcat(scale * missing, ca.DM.zeros(level.slacks))),
        relative,
        ca.vertcat(scale, ca.DM.ones(level.slacks)),
    )


def _relative_weights(weight: ca.SX, scale: ca.DM, price: float, slacks: int) -> list[ca.SX]:
    """Return the weights of the scaled rows, then of slacks, over the largest one."""
    whole = ca.densify(ca.vertcat(weight / scale**2, price * ca.DM.ones(slacks)))
    return [whole / ca.fmax(ca.mmax(whole), LEAST_WEIGHT)]


def _scaled(of_y: ca.SX, scale: ca.DM, units: Whitened) -> ca.SX:
    """Return a matrix over the unknowns p, or (p, w), over ỹ, its rows scaled."""
    columns = ca.diag(units.L_inv)
    extra = columns.numel() - of_y.shape[1]
    whole = ca.horzcat(of_y, type(of_y)(of_y.shape[0], extra)) if extra else of_y
    factor = scale @ ca.evalf(columns).T
    return ca.densify(factor * ca.densify(whole))
