"""Measures of a controller's problem at the mechanism's poses: its units, see `scales.py`."""

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.inverse_dynamics.followed_errors import followed
from mbcasadi.control.inverse_dynamics.inputs import default_inputs
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.parts.missed_tasks import floors
from mbcasadi.control.inverse_dynamics.problem import Problem
from mbcasadi.control.inverse_dynamics.scales import ForceWeights, ProblemScales
from mbcasadi.description.qp_stages import UNBOUNDED
from mbcasadi.description.tolerance import with_single
from mbcasadi.system.coordinates import pose_inputs

Array = NDArray[np.float64]

FAR = 10.0
"""A task is far out of reach where it requires this many times what actuators and gravity can
give. Below, the compromise between tasks counts; beyond, only the direction, and the QP keeps its
digits."""

MOVABLE = 1e-6
"""Task rows that move less than this share of the others have no limit: nothing moves them."""

LEAST_FLOAT_WEIGHT = 1e-4
"""Least `torque_weight` in single precision: the condition of the Hessian is its inverse, and
float's rounding times that is the relative error of forces that the tasks leave free."""

LEAST_SHARE = 1e-9
"""An actuator, row or force counts at least this share of the largest of its kind."""


def measure_problem(setup: Setup, symbols: dict[str, ca.SX], problem: Problem) -> ProblemScales:
    """Return the scales of a problem.

    Args:
        setup: the options.
        symbols: inputs of the controller, by name.
        problem: expressions of these inputs.
    """
    M, f, B, G, _ = problem.definite
    rows, actuators = problem.rows, problem.actuators
    outputs = {
        "M": M,
        "f": f,
        "B": B,
        "G": G,
        "J": problem.tasks.J,
        "limits": ca.fmax(ca.fabs(actuators.lower), ca.fabs(actuators.upper)),
        "of_p": rows.C_p,
        "of_lam": rows.C_lam,
        "of_w": rows.C_w,
        "of_a": rows.C_a,
        "weight": ca.SX(problem.tasks.weight),
    }
    inputs = {name: x for name, x in symbols.items() if name != "z" or setup.memory_size}
    dense = [ca.densify(x) for x in outputs.values()]
    matrices = ca.Function(
        "measure",
        list(inputs.values()),
        dense if problem.late is None else problem.late.put_into(dense),
        list(inputs),
        list(outputs),
    )
    found = [
        {key: np.asarray(x) for key, x in matrices(**values).items()}
        for values in _sampled_inputs(setup, inputs)
    ]
    samples = [_sizes(each) for each in found]
    definite = [x for x in samples if all(np.all(np.isfinite(value)) for value in x.values())]
    if not definite:
        definite = [{key: np.ones_like(value) for key, value in samples[0].items()}]
    J = [each["J"] for each in found]
    return _scales(definite, J, problem.contacts.of_lam.shape[1], setup)


def force_weights(setup: Setup, task: float, actuators: Array, contact: float) -> ForceWeights:
    """Return the weights of the regularisation: shares of the tasks' cost.

    Args:
        setup: the options.
        task, actuators, contact: as in `ProblemScales`.
    """
    shares = sum(setup.torque_weights)
    weights = shares * (task * actuators) ** 2
    single = weights * np.maximum(LEAST_FLOAT_WEIGHT / shares, 1)
    return ForceWeights(
        np.array([with_single(w, s) for w, s in zip(weights, single, strict=True)], float),
        setup.internal_force_weight * float(task * contact) ** 2,
    )


def _sizes(matrices: dict[str, Array]) -> dict[str, Array]:
    """Return sizes in the metric of the inertia at one pose; NaN where it is not definite."""
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(matrices["M"]))
    except np.linalg.LinAlgError:
        inverse = np.full_like(matrices["M"], np.nan)

    def squares(rows: Array) -> Array:
        return np.asarray(np.sum((rows @ inverse.T) ** 2, axis=1))

    reach = squares(matrices["J"])
    kept = {key: matrices[key] for key in ("limits", "of_p", "of_lam", "of_w", "of_a")}
    return kept | {
        "rows": squares(matrices["G"]),
        "coordinates": np.diag(matrices["M"]),
        "actuators": squares(matrices["B"].T),
        "unforced": np.sqrt(squares(matrices["f"].T)),
        "reach": np.sqrt(reach),
        "tasks": matrices["weight"].ravel() * reach,
    }


def whole_mass(setup: Setup) -> float:
    """Return the mass of a tree's bodies, kg; 0 where equations do not contain it."""
    tree = setup.system.tree
    return 0.0 if tree is None else float(sum(body.mass for body in tree.bodies))


def contact_scale(setup: Setup, rows: Array) -> float:
    """Return `m^-½` of the whole mass m, kg.

    Equations do not contain the mass: there it is the median length of the rows that can move.

    Args:
        setup: the options.
        rows: length of the contacts' rows in the inertia's metric.
    """
    mass = whole_mass(setup)
    if mass > 0:
        return float(mass**-0.5)
    moving = rows[rows > MOVABLE * rows.max(initial=0.0)]
    return float(np.median(moving)) if moving.size else 1.0


def _largest_fall(setup: Setup) -> float:
    """Return `m^½ g`: no free or constrained fall has a larger `(aᵀ M a)^½`.

    Infinite for equations, which contain neither mass nor gravity.
    """
    tree = setup.system.tree
    if tree is None:
        return float("inf")
    return float(whole_mass(setup) ** 0.5 * np.linalg.norm(tree.gravity))


def _sampled_inputs(setup: Setup, inputs: dict[str, ca.SX]) -> list[dict[str, Array]]:
    """Return inputs at the closed poses of the mechanism, all rows on."""
    usual, sampled = default_inputs(setup), []
    for q, v in setup.system.scales.states:
        values = usual | pose_inputs(setup.system, q) | {"v": v, "ref": setup.reference_at(q)}
        sampled.append({name: values[name] for name in inputs})
    return sampled


def _scales(
    samples: list[dict[str, Array]], J: list[Array], nj: int, setup: Setup
) -> ProblemScales:
    """Return the scales from values at poses where the inertia is definite.

    Args:
        samples: the values.
        J: (k, nv) Jacobians of all tasks at the poses.
        nj: number of contact rows, the last ones.
        setup: the options.
    """
    usual = {key: _usual([sample[key].ravel() for sample in samples]) for key in samples[0]}
    rows = _floored(np.sqrt(usual["rows"]))
    coordinates = _floored(np.sqrt(usual["coordinates"]))
    actuators = _floored(np.sqrt(usual["actuators"]))
    contact = contact_scale(setup, np.sqrt(usual["rows"][usual["rows"].size - nj :]))
    values = [
        np.abs(sample["of_p"]) @ (1 / actuators)
        + (np.abs(sample["of_lam"]) @ (1 / rows) if rows.size else 0.0)
        + np.abs(sample["of_w"]).sum(axis=1) / contact
        + np.abs(sample["of_a"]) @ (1 / coordinates)
        for sample in samples
    ]
    seen = usual["tasks"][usual["tasks"] > 0]
    limits = usual["limits"]
    strength = float(np.linalg.norm(actuators * limits)) + min(
        usual["unforced"][0], _largest_fall(setup)
    )
    bounded = bool(limits.size > 0 and np.all(limits < UNBOUNDED))
    reach = usual["reach"]
    reached = reach > MOVABLE * reach.max(initial=0.0)
    task = float(np.sqrt(np.median(seen))) if seen.size else 1.0
    return ProblemScales(
        required=np.where(reached & bounded, FAR * strength * reach, np.inf),
        reach=_floored(reach),
        rows=rows,
        coordinates=coordinates,
        actuators=actuators,
        inequalities=_floored(np.sqrt(np.mean(np.square(values), axis=0))),
        strength=strength if bounded else float("inf"),
        pull=FAR * float(usual["tasks"].sum()) or 1.0,
        task=task,
        contact=contact,
        followed=followed(setup, J),
        floors=floors(setup, J),
        force_weights=force_weights(setup, task, actuators, contact),
    )


def _usual(values: list[Array]) -> Array:
    """Return the median over samples, and the mean of what is mostly zero."""
    median = np.median(values, axis=0)
    return np.asarray(np.where(median > 0, median, np.mean(values, axis=0)))


def _floored(values: Array) -> Array:
    """Return the values, none below its share of the largest."""
    return np.asarray(np.maximum(values, LEAST_SHARE * values.max(initial=0.0) or 1.0))
