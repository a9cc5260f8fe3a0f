"""Inspection of the controller: the QP as data, and the motion and forces of a candidate."""

import casadi as ca

from mbcasadi.control.inverse_dynamics.condensed_problem import condensed_problem
from mbcasadi.control.inverse_dynamics.inputs import guard_inputs, input_symbols
from mbcasadi.control.inverse_dynamics.options import Setup
from mbcasadi.control.inverse_dynamics.posed import has_loops
from mbcasadi.control.inverse_dynamics.problem import assemble_problem
from mbcasadi.control.inverse_dynamics.scaling import ProblemScales
from mbcasadi.linalg.scalars import lifted
from mbcasadi.qp.kkt_residuals import positive


def inspection_fun(setup: Setup, scales: ProblemScales) -> ca.Function:
    """Return (q, v, [act], ref, mask, x) → the QP in y = (p, w), and the quantities at x.

    Outputs: `H g A_qp lba uba T t` (see `CondensedQP`), then for the candidate x: `y`, `p`, `a`,
    `lam` (equality rows), `contact_force` (3 nc,), `independent_rows`,
    `violation` (m,), and the tasks' `error` and `target`. With levels, x is y itself.

    Args:
        setup: the options.
        scales: the units of the problem, from its stages.
    """
    symbols = input_symbols(setup, 0)
    del symbols["z"]
    problem = assemble_problem(setup, guard_inputs(setup, symbols)[0])
    arguments = symbols
    if has_loops(problem):  # as in a tick: what is inspected has its rounding errors
        problem, arguments = lifted("terms", symbols, problem)
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
        "lam": lam[:first, 0],
        "contact_force": problem.contacts.of_lam @ lam[first:, 0] + problem.contacts.of_w @ w,
        "independent_rows": condensed.kept,
        "violation": positive(value - rows.upper) + positive(rows.lower - value),
        "error": problem.tasks.error,
        "target": problem.tasks.target,
    }
    dense = [ca.densify(value) for value in outputs.values()]
    return ca.Function(
        "inspect", [*arguments.values(), x], dense, [*arguments, "x"], list(outputs), {"cse": True}
    )


def monitor_fun(candidate: ca.Function, inspect: ca.Function) -> ca.Function:
    """Return (q, v, [act], ref, mask) → (target, error, contact_force) for reports.

    It solves the QP again, because u does not determine the internal contact forces.
    """
    names = [inspect.name_in(i) for i in range(inspect.n_in() - 1)]
    inputs = {name: ca.MX.sym(name, inspect.size1_in(name)) for name in names}
    x = candidate(**inputs)["x"]
    outputs_at_x = inspect(**inputs, x=x)
    outputs = ["target", "error", "contact_force"]
    return ca.Function(
        "monitor", list(inputs.values()), [outputs_at_x[name] for name in outputs], names, outputs
    )
