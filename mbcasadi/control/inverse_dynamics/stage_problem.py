"""The problem of a controller in all its unknowns: what a stage of optimal control evaluates.

    min ½ ‖r(p, a, lam, w)‖²   s.t.   M a = f + B p + Gᵀ lam,   G a + c = 0,   lower <= g <= upper

with actuator forces p, accelerations a, multipliers lam of equality constraints and contacts, and
the further unknowns w of the controller (slacks, the shortfall, internal forces). It holds the same
parts, weights and rows as the tick of the controller, which eliminates a and lam; nothing is stated
again here. Rows that a mask has off are zero: in their place stands lam = 0.
"""

from dataclasses import dataclass

import casadi as ca

from mbcasadi import linalg
from mbcasadi.control.inverse_dynamics.condensed_problem import CondensedProblem, condensed_problem
from mbcasadi.control.inverse_dynamics.contacts.sliding_contacts import with_drag
from mbcasadi.control.inverse_dynamics.inputs import input_symbols, rows_on
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.problem import assemble_problem
from mbcasadi.control.inverse_dynamics.scaling import measure_problem
from mbcasadi.control.inverse_dynamics.softened import scales_of_all, soften
from mbcasadi.control.tick.instant import Instant
from mbcasadi.control.tick.tuning import tuned_values
from mbcasadi.errors import ProblemError
from mbcasadi.qp.rows import Row

UNKNOWNS = ("p", "a", "lam", "w")


@dataclass(frozen=True)
class StageProblem:
    """The problem as a Function.

    Attributes:
        function: (q, v, ref, mask, p, a, lam, w) → (residual, equations, rows, lower, upper).
        about: what each row is; the last `cones` times three are those of quadratic cones.
        cones: number of quadratic cones.
    """

    function: ca.Function
    about: tuple[Row, ...]
    cones: int


def stage_problem(setup: Setup) -> StageProblem:
    """Return the problem of a controller.

    Raises:
        ProblemError: levels, loads that are shared, activations, or parts that remember something
            between ticks, which a plan has not.
    """
    require_plannable(setup)
    symbols = input_symbols(setup, None)
    now = planned_instant(setup, symbols)
    problem = assemble_problem(setup, now)
    scales = measure_problem(setup, symbols, problem)
    problem = soften(problem, setup.soft, now.tuning, scales)
    scales = scales_of_all(scales, problem.rows.about, setup.soft, problem.rows.cones)
    qp = condensed_problem(setup, problem, scales)
    sizes = (setup.system.nu, setup.system.nv, qp.problem.dynamics.G.shape[0])
    counts = dict(zip(UNKNOWNS, (*sizes, qp.problem.contacts.of_w.shape[1]), strict=True))
    unknowns = {name: ca.SX.sym(name, count) for name, count in counts.items()}
    rows = qp.problem.rows
    outputs = {
        "residual": _residual(qp, unknowns),
        "equations": _equations(qp, unknowns),
        "rows": rows.value(unknowns["p"], unknowns["lam"], unknowns["w"], unknowns["a"]),
        "lower": ca.SX(rows.lower),
        "upper": ca.SX(rows.upper),
    }
    expressions = [ca.densify(x) for x in outputs.values()]
    if problem.late is not None:
        expressions = problem.late.put_into(expressions)
    inputs = {name: symbols[name] for name in ("q", "v", "ref", "mask")} | unknowns
    function = ca.Function(
        "stage", [*inputs.values()], expressions, [*inputs], [*outputs], {"cse": True}
    )
    return StageProblem(function, rows.about, rows.cones)


def require_plannable(setup: Setup) -> None:
    """Raise `ProblemError` for what a stage of a plan does not have."""
    refused = {
        "levels": bool(setup.levels),
        "shared loads of loops": setup.load_sharing is not None,
        "activations": setup.system.na > 0,
        "tunable numbers": bool(setup.tuning),
        "parameters of the model": len(setup.system.parameters) > 0,
        "a delay": setup.delay_ticks > 0,
        "servos that move during a tick": setup.servos is not None,
    }
    for each in setup.bound:
        acts = each.state or each.forces or each.rows
        refused[f"'{each.name}', which remembers or measures"] = bool(
            each.inputs or (each.memory and acts)
        )
    found = [name for name, is_given in refused.items() if is_given]
    if found:
        raise ProblemError(
            f"'{setup.name}' has {', '.join(found)}; expected a controller whose problem follows "
            "from q, v, the reference and the mask of a sample"
        )


def planned_instant(setup: Setup, symbols: dict[str, ca.SX]) -> Instant:
    """Return the mechanism at a sample of a plan, with contacts and gains."""
    tasks = list(zip(setup.tasks, setup.gains, strict=True))
    contacts = list(zip(setup.contact_names, setup.contacts, strict=True))
    tuned = tuned_values({}, setup.system, tasks, contacts)
    return Instant.planned(
        (symbols["q"], symbols["v"]),
        symbols["ref"],
        setup.reference_slices,
        on=symbols["mask"],
        on_rows=rows_on(setup, symbols["mask"]),
        gains=tuned.gains,
        contacts=tuned.contacts,
        memory={name: ca.SX(x.stop - x.start, 1) for name, x in setup.memory_places.items()},
    )


def _residual(qp: CondensedProblem, x: dict[str, ca.SX]) -> ca.SX:
    """Return r: tasks, actuator forces, further unknowns, weighed forces."""
    tasks, weights, forces = qp.problem.tasks, qp.weights, qp.forces
    parts: list[ca.SX] = [
        ca.sqrt(ca.SX(tasks.weight)) * (linalg.product(tasks.J, x["a"]) + tasks.offset),
        ca.sqrt(ca.DM(weights.actuators)) * (x["p"] - qp.problem.p_ref),
        weights.internal**0.5 * x["w"],
    ]
    if forces.weights.any():
        parts.append(ca.sqrt(ca.DM(forces.weights)) * forces.gap(x["lam"], x["w"]))
    return ca.vertcat(ca.SX(0, 1), *parts)


def _equations(qp: CondensedProblem, x: dict[str, ca.SX]) -> ca.SX:
    """Return `M a - f - B p - Gᵀ lam`, and `G a + c` of rows that are on, lam of others."""
    dynamics, contacts, p = qp.problem.definite, qp.problem.contacts, x["p"]
    if contacts.sliding:
        dynamics = with_drag(dynamics, contacts.drag, contacts.sliding)
        first = dynamics.G.shape[0] - contacts.drag.shape[1]
        p = ca.vertcat(p, x["lam"][[first + row for row in contacts.sliding], 0])
    force = dynamics.f + dynamics.B @ p + dynamics.G.T @ x["lam"]
    no_force = (1 - qp.problem.on) * x["lam"]
    return ca.vertcat(dynamics.M @ x["a"] - force, dynamics.G @ x["a"] + dynamics.c + no_force)
