"""The levels of a controller: which rows belong to each, in units in which their strengths compare.

The unknown is `ỹ = D (y - y_ref)` of the actuator forces and internal forces `y = (p, w)`, with
`D² ` the regularisation's weights over its share of the tasks' cost: a unit of ỹ is an acceleration
`(aᵀ M a)^½ = 1`. A row of a level is divided by its usual length in the same metric, so its
strength is about one in usual poses, whatever the units of the model are.
"""

from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.linalg.scalars import in_scalars
from mbcasadi.qp.whitening import LeastDistance, Whitened

LEAST_WEIGHT = 1e-150
"""Stands for zero in a denominator: a level whose weights are all zero."""

FORCES = "forces"
"""Name of the level of all contact forces, where there is a `force_weight`."""


@dataclass(frozen=True)
class Level:
    """One level.

    Attributes:
        name: of its tasks.
        rows: numbers of its rows among those of all tasks; none for the contact forces.
    """

    name: str
    rows: tuple[int, ...]


class LevelRows(NamedTuple):
    """The residual `A ỹ + b` of a level, to be zero in the metric of `weight`.

    Attributes:
        A: (k, n) rows of usual length one; zero where the weight is zero.
        b: (k,).
        weight: (k,) the largest of which is one.
        scale: (k,) what the task's rows were multiplied by.
    """

    A: ca.SX
    b: ca.SX
    weight: ca.SX
    scale: ca.DM


def levels_of(setup: Setup) -> tuple[Level, ...]:
    """Return the levels of a controller, first to last, without the regularisation."""
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
    return (*levels, Level(FORCES, ())) if np.any(setup.contact_weights) else tuple(levels)


def unit_weights(setup: Setup, scales: ProblemScales) -> ForceWeights:
    """Return `D²` of the actuator forces (nu,) and of the internal forces."""
    share = float(np.mean(sum(setup.torque_weights))) * scales.task**2
    weights = scales.force_weights
    return ForceWeights(weights.actuators / share, weights.internal / share)


def unit_coordinates(setup: Setup, qp: CondensedProblem) -> Whitened:
    """Return the substitution `y = y_ref + D⁻¹ ỹ`."""
    weights, kind = unit_weights(setup, qp.scales), type(qp.condensed.t)
    of_w = qp.problem.contacts.of_w
    root = ca.DM(np.sqrt(weights.actuators))
    if np.any(setup.contact_weights):  # the level of the forces couples all unknowns
        root = ca.vertcat(root, ca.DM.ones(of_w.shape[1]) * weights.internal**0.5)
    y_ref = ca.vertcat(qp.problem.p_ref, ca.DM.zeros(of_w.shape[1]))
    return Whitened(ca.densify(y_ref), kind(ca.diag(1 / root)), weights.internal, kind(0))


def level_values(
    setup: Setup, qp: CondensedProblem, units: Whitened, hard: LeastDistance
) -> dict[str, ca.SX]:
    """Return the numbers of all levels and of the hard rows over ỹ, by name."""
    values = {"level.C": hard.A_qp, "level.lower": hard.lba, "level.upper": hard.uba}
    for k, level in enumerate(levels_of(setup)):
        rows = level_rows(qp, level, units)
        own = rows.weight * rows.scale**2 if level.rows else type(rows.weight)(0, 1)
        values |= {
            f"level{k}.A": rows.A,
            f"level{k}.b": rows.b,
            f"level{k}.weight": rows.weight,
            f"level{k}.own_weight": ca.densify(own),
        }
    return values


def level_rows(qp: CondensedProblem, level: Level, units: Whitened) -> LevelRows:
    """Return the residual of a level at a state."""
    condensed, tasks = qp.condensed, qp.problem.tasks
    p_ref = qp.problem.p_ref
    if level.name == FORCES and not level.rows:
        F, f = qp.forces.map(condensed)
        scale = ca.DM.ones(F.shape[0]) * qp.scales.contact
        missing = linalg.product(F[:, : p_ref.numel()], p_ref) + f - qp.forces.ref
        weight = type(f)(ca.DM.ones(F.shape[0]))
        return LevelRows(_scaled(F, scale, units), scale * missing, weight, scale)
    rows = list(level.rows)
    J, offset = tasks.J[rows, :], tasks.offset[rows, 0]
    scale = ca.DM(1 / qp.scales.reach[rows])
    weight = ca.densify(type(offset)(tasks.weight)[rows, 0])
    (relative,) = in_scalars(
        "level_weights", lambda k: _relative_weights(k["weight"], scale), {"weight": weight}
    )
    of_p = linalg.product(J, condensed.T)
    missing = linalg.product(J, condensed.t + linalg.product(condensed.T, p_ref)) + offset
    counts = relative > 0
    A = ca.repmat(counts, 1, units.L_inv.shape[0]) * _scaled(of_p, scale, units)
    return LevelRows(ca.densify(A), ca.densify(scale * missing), relative, scale)


def _relative_weights(weight: ca.SX, scale: ca.DM) -> list[ca.SX]:
    """Return the weights of the scaled rows over the largest one."""
    whole = ca.densify(weight / scale**2)
    return [whole / ca.fmax(ca.mmax(whole), LEAST_WEIGHT)]


def _scaled(of_y: ca.SX, scale: ca.DM, units: Whitened) -> ca.SX:
    """Return a matrix over the unknowns p, or (p, w), over ỹ, its rows scaled."""
    columns = ca.diag(units.L_inv)
    extra = columns.numel() - of_y.shape[1]
    whole = ca.horzcat(of_y, type(of_y)(of_y.shape[0], extra)) if extra else of_y
    factor = scale @ ca.evalf(columns).T
    return ca.densify(factor * ca.densify(whole))
