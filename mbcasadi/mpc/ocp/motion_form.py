"""A problem of semi-implicit steps, as what its derivatives are made of."""

from collections.abc import Sequence

import casadi as ca

from mbcasadi.control.tasks.reference import slot_slices
from mbcasadi.mpc.integrators.semi_implicit import rotations_of, turned
from mbcasadi.mpc.ocp.problem import DERIVATIVES, STEP, MotionForm
from mbcasadi.mpc.ocp.stage import Stage
from mbcasadi.system import System


def motion_form(
    stage: Stage,
    derivatives: ca.Function,
    terms: tuple[Sequence[ca.SX], Sequence[ca.SX], Sequence[ca.SX | None]],
) -> MotionForm:
    """Return the parts of a problem.

    Args:
        stage: its symbols.
        derivatives: those of `semi_implicit.derivatives_fun`.
        terms: residuals, rows of the path, and derivatives of those rows that have a formula.
    """
    system, rates, given = stage.system, stage.u_last.numel(), stage.motion.given
    residual = stage.of_motion("residual", "r", terms[0])
    path = stage.of_motion("path", "g", terms[1])
    path_slopes = _path_slopes(stage, terms[1], terms[2])
    x, u, p = (ca.MX.sym(key, residual.size1_in(key)) for key in ("x", "u", "p"))
    found = derivatives.call(stage.motion_inputs(x, u, p, derivatives))
    assert stage.motion.function is not None
    plain = stage.motion.function()
    a_lam = plain.call(stage.motion_inputs(x, u, p, plain))
    moved, gap, tangent = charts(system, rates)
    v = ca.SX.sym("v_next", system.nv)
    blocks = [turned(v[k : k + 3], stage.step) for k in rotations_of(system)]
    turns = [ca.vertcat(ca.SX(0, 1), *(ca.vec(pair[i].T) for pair in blocks)) for i in (0, 1)]
    return MotionForm(
        motion=ca.Function("motion_at", [x, u, p], a_lam, ["x", "u", "p"], ["a", "lam"]),
        derivatives=ca.Function("derivatives", [x, u, p], found, ["x", "u", "p"], [*DERIVATIVES]),
        residual=residual,
        path=path,
        path_slopes=path_slopes,
        tangent=tangent,
        turns=ca.Function("turns", [v, *([stage.ref[STEP]] if given else [])], turns),
        rotations=rotations_of(system),
        moved=moved,
        gap=gap,
        inertia=stage.function("inertia", "M", [ca.vec(stage.inertia())], last=True),
        step=stage.motion.period,
        step_row=slot_slices(stage.slots)[STEP].start if given else None,
    )


def _path_slopes(
    stage: Stage, values: Sequence[ca.SX], slopes: Sequence[ca.SX | None]
) -> ca.Function | None:
    """Return (x, p) → derivatives (ng, 2 nv (+ nu)) of rows that have a formula; else zero rows."""
    if all(slope is None for slope in slopes):
        return None
    nx = 2 * stage.system.nv + stage.u_last.numel()
    rows = [ca.SX(value.numel(), nx) for value in values]
    for row, slope in zip(rows, slopes, strict=True):
        if slope is not None:
            row[:, : slope.shape[1]] = slope
    p = ca.vertcat(ca.SX(0, 1), *stage.ref.values())
    return ca.Function("path_slopes", [stage.x, p], [ca.sparsify(ca.vertcat(*rows))], {"cse": True})


def charts(system: System, rates: int) -> tuple[ca.Function, ca.Function, ca.Function]:
    """Return (x, deviation) → (x ⊕ deviation), (x, y) → (y ⊖ x), (x) → (N)."""
    nq, nv = system.nq, system.nv
    x, y = ca.SX.sym("x", nq + nv + rates), ca.SX.sym("y", nq + nv + rates)
    d = ca.SX.sym("d", 2 * nv + rates)
    moved = ca.vertcat(system.integrate(x[:nq], d[:nv]), x[nq:] + d[nv:])
    gap = ca.vertcat(system.difference(x[:nq], y[:nq]), y[nq:] - x[nq:])
    tangent = ca.diagcat(ca.SX(system.velocity_map(x[:nq])), ca.SX.eye(nv + rates))
    return (
        ca.Function("moved", [x, d], [moved]),
        ca.Function("gap", [x, y], [gap]),
        ca.Function("tangent", [x], [ca.sparsify(tangent)]),
    )
