"""Inspection of the controller: the QP as data, and the motion and forces of a candidate."""

from dataclasses import replace
from typing import NamedTuple, cast

import casadi as ca
import numpy as np

from mbcasadi.control.inverse_dynamics.condensed_problem import condensed_problem
from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, input_symbols, with_active_set
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.parts.missed_tasks import (
    judged_rows,
    judged_tasks,
    missed,
)
from mbcasadi.control.inverse_dynamics.parts.observer import learned_force
from mbcasadi.control.inverse_dynamics.posed import has_loops
from mbcasadi.control.inverse_dynamics.problem import Problem, assemble_problem
from mbcasadi.control.inverse_dynamics.scales import ProblemScales
from mbcasadi.control.inverse_dynamics.shared_loads import DETERMINED, undetermined
from mbcasadi.control.inverse_dynamics.softened import soften
from mbcasadi.control.inverse_dynamics.task_stack import stack_tasks
from mbcasadi.control.inverse_dynamics.viability import Viability
from mbcasadi.control.tick.instant import Instant
from mbcasadi.description import LeastDistanceStages
from mbcasadi.description.status import Status
from mbcasadi.linalg.scalars import in_scalars, lifted
from mbcasadi.qp.quadratic_cones import violations
from mbcasadi.qp.rows import Rows


class Inspected(NamedTuple):
    """What is inspected: the problem, the force that the observer has learned, and the tasks.

    Those are at the measured state, where the mechanism is, and not next to it with closed loops.
    """

    problem: Problem
    learned: ca.SX
    target: ca.SX
    error: ca.SX


def _inspected(setup: Setup, at: Instant, problem: Problem) -> Inspected:
    q, v = at.measured
    tasks = stack_tasks(setup, replace(at, q=q, v=v)) if setup.system.nc else problem.tasks
    return Inspected(problem, learned_force(at), tasks.target, tasks.error)


def inspection_fun(setup: Setup, scales: ProblemScales, m: int) -> ca.Function:
    """Return (q, v, [act], ref, [tuning], mask, [z], x) → the QP in y = (p, w), and more at x.

    Outputs: `H g A_qp lba uba T t` (see `CondensedQP`), then for the candidate x: `y`, `p`, `a`,
    `lam` and `determined` (equality rows), `contact_force` (3 nc,), `independent_rows`,
    `violation` (m,), and of the tasks `task_map`, `task_right`, `task_weight` (see `TaskShares`),
    `error`, `target` at the measured state, and where some are judged `miss`, `miss_share`,
    `missed`, `desired` (see `missed_tasks.py`).

    Args:
        setup: the options.
        scales: the units of the problem, from its stages.
        m: number of inequalities.
    """
    symbols = input_symbols(setup, None)
    if setup.memory_size:  # the dynamics depend on it
        symbols["z"] = with_active_set(setup, symbols["z"], m)
    else:
        del symbols["z"]
    at, _ = guard_inputs(setup, symbols)
    problem = soften(assemble_problem(setup, at), setup.soft, at.tuning, scales)
    arguments = symbols
    late, problem = problem.late, replace(problem, late=None)
    seen = _inspected(setup, at, problem)
    if late or has_loops(problem):  # as in a tick: what is inspected has its rounding errors
        seen, arguments = lifted("terms", symbols, seen, late)
        problem = seen.problem
    qp = condensed_problem(setup, problem, scales)
    problem, condensed, whitened = qp.problem, qp.condensed, qp.whitened
    nu, rows = setup.system.nu, problem.rows
    n, first = nu + problem.contacts.of_w.shape[1], setup.system.nc
    constant = rows.C_a @ condensed.t - rows.C_lam @ condensed.e
    of_p = rows.C_p - rows.C_lam @ condensed.E + rows.C_a @ condensed.T
    x = type(arguments["q"]).sym("x", n)
    y = x if setup.levels else whitened.unknown(x)
    p = ca.fmin(ca.fmax(y[:nu, 0], problem.actuators.lower), problem.actuators.upper)
    w = y[nu:, 0]
    lam = condensed.multipliers(p)
    value = rows.value(p, lam, w, condensed.acceleration(p))
    viability, contacts, m_lam = Viability.of(setup), problem.contacts, lam.numel()
    part = undetermined(qp.basis, problem.on[:first, 0], scales.rows[:first])
    freedom = (part if qp.shared is None else qp.shared.part).freedom
    outputs = {
        "H": ca.diagcat(ca.tril2symm(ca.tril(qp.H)), whitened.free * ca.DM.eye(n - qp.H.shape[0])),
        "g": qp.g,
        "A_qp": ca.densify(ca.horzcat(of_p, rows.C_w)),
        "lba": rows.lower - constant,
        "uba": rows.upper - constant,
        "T": ca.densify(condensed.T),
        "t": condensed.t,
        "y": y,
        "p": p,
        "a": condensed.acceleration(p),
        "lam": (lam if qp.shared is None else qp.shared.multipliers(lam, w))[:first, 0],
        "determined": freedom[:first, 0] <= DETERMINED,
        "contact_force": contacts.of_lam @ lam[m_lam - contacts.of_lam.shape[1] :, 0]
        + contacts.of_w @ w,
        "independent_rows": condensed.kept,
        "violation": violations_of(rows, value),
        "task_map": problem.tasks.J @ condensed.T,
        "task_right": -(problem.tasks.J @ condensed.t + problem.tasks.offset),
        "task_weight": problem.tasks.weight,
        "error": seen.error,
        "target": seen.target,
        "disturbance": seen.learned,
        "asked": qp.demands.asked,
        "given": qp.demands.given,
        "shortfall": viability.shortfall(scales, rows.about, w)
        if viability.sharing
        else type(x)(0),
    }
    tasks = judged_tasks(setup)
    if tasks:
        judged = judged_rows(tasks, problem.tasks, scales.floors)
        miss = problem.tasks.J @ condensed.acceleration(p) + problem.tasks.offset
        outputs |= {"miss": miss, "miss_share": judged["share"]}
        outputs |= {"missed": missed(tasks, judged, miss)}
        outputs |= {"desired": problem.tasks.c - problem.tasks.offset}
    dense = [ca.densify(value) for value in outputs.values()]
    return ca.Function(
        "inspect",
        [*arguments.values(), x],
        dense,
        [*arguments, "x"],
        list(outputs),
        {"cse": True, "allow_duplicate_io_names": True},  # p of parameters, and p of forces
    )


def violations_of(rows: Rows, value: ca.SX) -> ca.SX:
    """Return by how much each row is violated (m,)."""
    known = {"value": value, "lower": rows.lower, "upper": rows.upper}
    violated: ca.SX = in_scalars("violated", lambda k: [violations(**k, cones=rows.cones)], known)[
        0
    ]
    return violated


MONITORED = ("target", "error", "contact_force")


def monitor_fun(solution: ca.Function, inspect: ca.Function) -> ca.Function:
    """Return (q, v, [act], ref, mask) → (target, error, contact_force) for reports.

    It solves the QP again where there are contacts: u does not determine their internal forces.
    These are NaN where that solution does not stand its check, as may happen to a plugin of CasADi
    where the controller's own solver finds one.

    Args:
        solution: (inputs) → outputs of a tick and x, of a solver.
        inspect: of the controller.
    """
    names, seen = inspect.name_in()[:-1], _monitored(inspect)
    inputs = {name: ca.MX.sym(name, inspect.size1_in(name)) for name in names}
    if "x" in seen.name_in():
        found = solution(**inputs)
        *outputs, force = seen.call([(inputs | found)[name] for name in seen.name_in()])
        outputs += [ca.if_else(found["status"] <= Status.SUBOPTIMAL, force, np.nan)]
    else:
        outputs = seen.call([inputs[name] for name in seen.name_in()])
    return ca.Function("monitor", list(inputs.values()), outputs, names, list(MONITORED))


def _monitored(inspect: ca.Function) -> ca.Function:
    """Return `inspect` with these outputs alone, and without x where none of them needs it."""
    names = inspect.name_in()
    symbols = cast(list[ca.MX], inspect.sx_in() if inspect.is_a("SXFunction") else inspect.mx_in())
    found = dict(zip(inspect.name_out(), inspect.call(symbols, True, False), strict=True))
    outputs = [found[name] for name in MONITORED]
    if not ca.depends_on(ca.vertcat(*outputs), symbols[-1]):
        names, symbols = names[:-1], symbols[:-1]
    options = {"allow_duplicate_io_names": True}  # p of parameters, and p of forces
    return ca.Function("monitored", symbols, outputs, names, list(MONITORED), options)


def monitor_stages(
    stages: LeastDistanceStages, inspect: ca.Function, point: ca.Function | None
) -> LeastDistanceStages | None:
    """Return the stages of a tick whose outputs are those of `monitor_fun`, and z as it was.

    None where nothing that is monitored depends on the solution: `monitor_fun` solves no QP.

    Args:
        stages: of the law.
        inspect: as in `monitor_fun`.
        point: (carry, passed, x) → (x) in the coordinates of `inspect`; None where they are the
            solver's.
    """
    seen, finish = _monitored(inspect), stages.finish
    if "x" not in seen.name_in():
        return None
    names = finish.name_in()
    known = {name: ca.MX.sym(name, finish.sparsity_in(name)) for name in names}
    x = known["x"]
    if point is not None:
        x = point(known["carry"], known.get("passed", ca.MX(0, 1)), x)
    at = known | {"x": x}
    found = seen.call([at[name] for name in seen.name_in()])
    outputs = dict(zip(MONITORED, found, strict=True)) | {"z_next": known["z"]}
    return replace(
        stages,
        finish=ca.Function("finish", [*known.values()], [*outputs.values()], names, [*outputs]),
    )
