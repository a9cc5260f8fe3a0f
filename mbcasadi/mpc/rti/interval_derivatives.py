"""Motion, residuals and rows of an interval about a guess, in coordinates or along tangents.

Both give F by z = (u, x), and J, D by y = (z, F z) with the values `r` and `values`, and the gap of
the guess; D, of the path, is transposed. Rows of F are the rates at the end of the interval, along
tangents with the multipliers behind them where a cost or row depends on these.
"""

import casadi as ca

from mbcasadi.mpc.ocp.problem import DERIVATIVES, MotionForm, OptimalControlProblem


def chart_of(ocp: OptimalControlProblem) -> tuple[ca.Function, ca.Function]:
    """Return (x, deviation) → (x ⊕ deviation), and (x, y) → (y ⊖ x)."""
    if ocp.motion is not None:
        return ocp.motion.moved, ocp.motion.gap
    x, y = ca.SX.sym("x", ocp.nx), ca.SX.sym("y", ocp.nx)
    return ca.Function("moved", [x, y], [x + y]), ca.Function("gap", [x, y], [y - x])


def by_coordinates(
    ocp: OptimalControlProblem, x: ca.MX, u: ca.MX, p: ca.MX, x_next: ca.MX
) -> dict[str, ca.MX]:
    """Return motion, residuals and path by (u, x), in the coordinates of x."""
    nx, w = ocp.nx, ca.MX.sym("w", ocp.nx + ocp.nu)
    F, r, g = (part(w[:nx], w[nx:], p) for part in (ocp.dynamics, ocp.residual, ocp.path))
    outputs = [F, r, g, *(_by_u_first(ca.jacobian(part, w), nx) for part in (F, r, g))]
    at_w = ca.Function("interval_w", [w, p], outputs, {"cse": True})
    F, r, g, A, J, D = at_w(ca.vertcat(x, u), p)
    none = ca.MX(0, 1)
    return {
        "F": A,
        "J": ca.horzcat(J, ca.MX(J.shape[0], nx)),
        "D": ca.vertcat(D.T, ca.MX(nx, D.shape[0])),
        "r": r,
        "values": g,
        "Phi": none,
        "Gamma": none,
        "d_a": none,
        "d_b": F - x_next,
    }


def _by_u_first(jacobian: ca.MX, nx: int) -> ca.MX:
    return ca.horzcat(jacobian[:, nx:], jacobian[:, :nx])


def by_tangents(form: MotionForm, x: ca.MX, u: ca.MX, p: ca.MX, x_next: ca.MX) -> dict[str, ca.MX]:
    """Return motion, residuals and path by (u, δx), along tangents.

    What depends on accelerations does so by the rates b⁺ at the end of the interval,
    `δa = (δb⁺ - δv) / h`: few numbers for each row, where by (u, δx) all would be some.
    """
    h, derivatives = form.length(p), dict(zip(DERIVATIVES, form.derivatives(x, u, p), strict=True))
    nv, nu = derivatives["a"].shape[0], u.shape[0]
    nx = form.tangent.size2_out(0)
    rates = nx - 2 * nv
    by_v = ca.DM.eye(nv) + h * derivatives["a_v"]
    F = ca.vertcat(
        ca.horzcat(h * derivatives["a_u"], h * derivatives["a_q"], by_v, ca.MX(nv, rates)),
        ca.horzcat(ca.DM.eye(nu), ca.DM(nu, nx))[:rates, :],
    )
    x_end = reached(form, x, u, derivatives["a"], h)
    gap = form.gap(x_next, x_end)
    d_b = gap[nv:]
    length = [] if form.step_row is None else [h]
    Phi, Gamma = form.turns.call([_rates(x_end, nv, rates), *length])
    moved = h * d_b[:nv]
    for k, first in enumerate(form.rotations):
        block = ca.reshape(Gamma[9 * k : 9 * k + 9], 3, 3).T
        moved[first : first + 3] = block @ d_b[first : first + 3]
    parts = {"Phi": Phi, "Gamma": Gamma, "d_a": gap[:nv] - moved, "d_b": d_b}
    by_lam = dict[str, ca.MX]()
    for key, value, function, slopes in (
        ("r", "J", form.residual, None),
        ("values", "D", form.path, form.path_slopes),
    ):
        parts[key] = function(x, u, p, derivatives["a"], derivatives["lam"])
        zero_rows = set() if slopes is None else set(slopes.sparsity_out(0).row())
        inputs = [x, u, p, derivatives["a"], derivatives["lam"]]
        by_x, by_u, by_a, by_lam[value] = _jacobians(function, zero_rows, inputs)
        along = by_x @ form.tangent(x)
        along = along if slopes is None else along + slopes(x, p)
        by_rates = by_a / h
        before = ca.horzcat(ca.MX(by_a.shape[0], nv), by_rates, ca.MX(by_a.shape[0], rates))
        parts[value] = ca.horzcat(
            by_u, along - before, by_rates, ca.MX(by_a.shape[0], rates), by_lam[value]
        )
    if any(J.nnz() for J in by_lam.values()):
        lam = [derivatives[f"lam_{key}"] for key in ("u", "q", "v")]
        F = ca.vertcat(F, ca.horzcat(*lam, ca.MX(lam[0].shape[0], rates)))
    else:
        for value in by_lam:
            parts[value] = parts[value][:, : nu + nx + F.shape[0]]
    return parts | {"F": F, "D": parts["D"].T}


def reached(form: MotionForm, x: ca.MX, u: ca.MX, a: ca.MX, h: ca.MX | float) -> ca.MX:
    """Return the state at the end of a step of length h from x with the acceleration a."""
    nv, nx = a.shape[0], form.tangent.size2_out(0)
    further = nx - 2 * nv
    v_next = _rates(x, nv, further) + h * a
    moved = form.moved(x, ca.vertcat(h * v_next, ca.MX.zeros(nx - nv)))
    return ca.vertcat(moved[: x.shape[0] - nv - further, 0], v_next, u[:further, 0])


def _rates(x: ca.MX, nv: int, further: int) -> ca.MX:
    """Return v of a state with further entries behind it."""
    return x[x.shape[0] - nv - further : x.shape[0] - further, 0]


def _jacobians(function: ca.Function, known: set[int], inputs: list[ca.MX]) -> list[ca.MX]:
    """Return the Jacobians of (x, u, p, a, lam) → (value) by x, u, a and lam.

    Args:
        function: to differentiate.
        known: rows that are left out, as zeros.
        inputs: of the Function.
    """
    s = function.sx_in()
    value = function(*s)
    value[sorted(known)] = 0
    outputs = [ca.jacobian(value, s[i]) for i in (0, 1, 3, 4)]
    jacobians = ca.Function(f"jacobians_{function.name()}", s, outputs, {"cse": True})
    return list(jacobians.call(inputs))
