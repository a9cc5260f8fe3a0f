"""Answers judged in 50 digits: the exact acceleration of the control, and its exact optimality.

    cd tests; python -m campaign.fifty_digits --problems 1000

The measured state is closed in 50 digits. The rank of the rows is the mechanism's known one: the
number of coordinates less its mobility; which rows are taken is found by pivoting, and any choice
of that many independent rows gives the same motion. The control that was returned then has one
exact acceleration a, and the QP in the actuator forces has an exact gradient.
"""

import argparse
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import qr

from campaign.case import Case, Inputs
from campaign.cases import case
from campaign.mechanics import Array, Numbers
from campaign.states import draw_inputs
from mbcasadi.control.inverse_dynamics.solution import InverseDynamicsSolution
from mbcasadi.description.status import Flag

BITS = 200  # 60 digits, so that 50 are left
CLOSED = 1e-45  # relative residual of a closed state
CLOSING_STEPS = 12
SEED = 50
MOBILITY = {
    "four_bar": 1, "four_bar_mm": 1, "four_bar_km": 1, "massless_four_bar": 1,
    "massless_four_bar_km": 1, "parallelogram": 1, "five_bar": 2, "six_bar": 1, "six_bar_mm": 1,
    "slider_crank": 1, "slider_crank_mm": 1, "held_body": 3, "held_body_km": 3, "particles": 3,
    "particles_km": 3,
}  # fmt: skip


@dataclass(frozen=True)
class ExactVerdict:
    """Relative errors of one answer.

    Attributes:
        status: of the controller.
        acceleration: distance of the returned a from that of the returned control.
        row: largest residual of a row by the returned a.
        stationarity, complementarity: of the exact QP at the returned control.
    """

    status: int
    acceleration: float
    row: float
    stationarity: float
    complementarity: float

    @property
    def worst(self) -> float:
        return max(self.acceleration, self.row, self.stationarity, self.complementarity)


@cache
def closed_case(name: str) -> Case:
    """Return a case with all rows on: the mobility is that of the whole mechanism."""
    return replace(case(name), switched_loops=False)


def judged_exactly(name: str, number: int) -> tuple[ExactVerdict | None, Inputs]:
    """Return the verdict on a numbered state of a case; None for another assembly."""
    each = closed_case(name)
    inputs = draw_inputs(each, number, SEED)
    assert inputs is not None, f"{name} {number}: no closed pose"
    if not has_mobility(name, each, inputs):
        return None, inputs
    solution = each.controller.solve(inputs.q, inputs.v, inputs.ref, mask=inputs.mask, z=inputs.z)
    return judge_exactly(name, each, inputs, solution), inputs


def has_mobility(name: str, each: Case, inputs: Inputs) -> bool:
    """Return whether the pose is one of the mechanism's motion.

    A parallelogram can also be assembled where it is locked: there its mobility is another one.
    """
    rank = each.mechanics.nv - MOBILITY[name]
    values = np.linalg.svd(inputs.numbers.A * each.metric, compute_uv=False)
    return bool(np.all(values[rank:] < ANOTHER_ASSEMBLY * values[0]))


ANOTHER_ASSEMBLY = 1e-6
"""Relative singular value of a row that the known rank calls redundant; rounding is 1e-16."""


def judge_exactly(
    name: str, each: Case, inputs: Inputs, solution: InverseDynamicsSolution
) -> ExactVerdict:
    """Return the verdict on an answer, in 50 digits."""
    before, ctx.prec = ctx.prec, BITS
    try:
        return _judge(name, each, inputs, solution)
    finally:
        ctx.prec = before


def _judge(name, each, inputs, solution) -> ExactVerdict:
    mechanics = each.mechanics
    q, v, chosen = closed_state(each, inputs, mechanics.nv - MOBILITY[name])
    at = mechanics.numbers(q, v, np.ones(len(inputs.numbers.A)))
    T, t = motion(at, at.A[chosen], at.c[chosen])
    u = exact(solution.u)
    size = np.asarray(each.size)
    a, best = np.asarray(solution.a) / size, double(T @ u + t) / size
    scale = np.abs(best).max() + np.abs(double(t) / size).max()
    residual = double(at.A @ exact(solution.a) + at.c)
    lengths = np.linalg.norm(double(at.A) * size, axis=1)
    stationarity, complementarity = optimality(
        each, inputs, (q, v), (T, t, u), Flag.CLIPPED in solution.flags
    )
    return ExactVerdict(
        status=solution.status,
        acceleration=float(np.abs(a - best).max() / scale),
        row=float(np.max(np.abs(residual) / np.maximum(lengths, 1e-3 * lengths.max())) / scale),
        stationarity=stationarity,
        complementarity=complementarity,
    )


def closed_state(each: Case, inputs: Inputs, rank: int):
    """Return q, v on the manifold to 50 digits, and the rows that were taken.

    Newton's steps begin at the pose that was closed in double precision, where the rows that are
    redundant are known to be so.
    """
    on, metric = np.ones(len(inputs.numbers.A)), exact(each.metric) ** 2
    residual, rows = (partial(f, on=on) for f in (each.mechanics.residual, each.mechanics.rows))
    q = exact(inputs.closed_q)
    chosen = pivots(double(rows(q)) * each.metric, rank)
    for _ in range(CLOSING_STEPS):
        phi = residual(q)[chosen]
        if np.abs(double(phi)).max() / each.length < CLOSED:
            break
        q = middle(q - across(rows(q)[chosen], metric, phi))
    everything = np.abs(double(residual(q))).max() / each.length
    assert everything < 1e-10, f"a row that was not taken is open by {everything:.1e}"
    v, A = exact(inputs.v), rows(q)[chosen]
    return q, middle(v - across(A, metric, A @ v)), chosen


def pivots(A: Array, rank: int) -> list[int]:
    """Return as many independent rows as the rank says."""
    lengths = np.linalg.norm(A, axis=1)
    _, _, order = qr((A / np.maximum(lengths, 1e-300)[:, None]).T, pivoting=True, mode="economic")
    return sorted(order[:rank])


def across(A: Array, metric: Array, right: Array) -> Array:
    """Return the shortest x with `A x = right`, in a metric."""
    weighted = metric[:, None] * A.T
    return weighted @ solve(A @ weighted, right[:, None])[:, 0]


def motion(at: Numbers, A: Array, c: Array) -> tuple[Array, Array]:
    """Return T, t of `a = T p + t` from `M a - Aᵀ lam = f + B p`, `A a = -c`."""
    (nv, nu), m = at.B.shape, len(A)
    K = np.block([[at.M, -A.T], [A, np.zeros((m, m))]])
    right = np.block([[at.B, at.f[:, None]], [np.zeros((m, nu)), -c[:, None]]])
    found = solve(K, right)[:nv]
    return found[:, :nu], found[:, nu]


def optimality(each: Case, inputs: Inputs, state, found, clipped: bool) -> tuple[float, float]:
    """Return stationarity and complementarity of the exact QP, relative to the problem's size.

    Where references were clipped, the errors without actuator forces are shortened by one factor.
    """
    (q, v), (T, t, u) = state, found
    (task,) = each.tasks
    places = each.controller.reference_slices
    wanted = {name: exact(inputs.ref[places[f"posture.{name}"]]) for name in "qva"}
    kp, kd = exact(task.kp), exact(2 * np.sqrt(task.kp))
    right = wanted["a"] + (wanted["v"] - v) * kd + (wanted["q"] - q) * kp
    limits = each.controller.stages.scales.required if clipped else np.full(len(q), np.inf)
    shares = [abs(x) / arb(float(y)) for x, y in zip(right, limits, strict=True) if np.isfinite(y)]
    excess = max([arb(1), *shares], key=double)
    roots = np.sqrt(exact(task.weight))
    E, e = roots[:, None] * T, roots * (t - right) / excess
    H, g = E.T @ E + np.diag(exact(each.controller.force_weights.actuators)), E.T @ e
    gradient = double(H @ u + g)
    p, root = double(u), np.linalg.cholesky(double(H))
    distance = np.linalg.norm(np.linalg.solve(root, double(g)))
    from_optimum = np.linalg.norm(np.linalg.solve(root, gradient))
    size = from_optimum + distance + np.linalg.norm(double(e)) + 1e-150
    low, high = each.limits.T
    reach = np.linalg.norm(root, axis=1) / size
    at_low = np.where(np.isfinite(low), np.abs(p - low), np.inf) * reach < AT_LIMIT
    at_high = np.where(np.isfinite(high), np.abs(high - p), np.inf) * reach < AT_LIMIT
    mu = np.where(at_low, np.maximum(gradient, 0), 0) + np.where(
        at_high, np.minimum(gradient, 0), 0
    )
    held = mu != 0
    gaps = np.minimum(np.abs(p - low), np.abs(high - p))[held]
    gap = float(np.abs(mu[held]) @ gaps / size**2)
    return float(np.linalg.norm(np.linalg.solve(root, gradient - mu)) / size), gap


AT_LIMIT = 1e-6
"""Distance to a limit, in the whitened unknown and relative to its size, that counts as none."""


def elementwise(function):
    """Return a function of arrays of numbers in 50 digits."""
    return np.frompyfunc(function, 1, 1)


exact = elementwise(lambda x: x if isinstance(x, arb) else arb(float(x)))
middle = elementwise(lambda x: x.mid())


def double(x: Array) -> Array:
    """Return numbers in double precision."""
    return np.asarray(elementwise(float)(x), dtype=float)


def solve(A: Array, b: Array) -> Array:
    """Return `A⁻¹ b`, b a matrix."""
    A, b = (arb_mat(*x.shape, list(exact(x).ravel())) for x in (A, b))
    x = A.solve(b)
    return np.array([[x[i, j] for j in range(x.ncols())] for i in range(x.nrows())])


def main() -> int:
    """Judge many answers in 50 digits; return 0 only if none was wrong."""
    parser = argparse.ArgumentParser(prog="campaign.fifty_digits", description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    each = max(1, round(parser.parse_args().problems / len(MOBILITY)))
    wrong = 0
    print(f"{'case':22s}{'solved':>8s}{'of':>6s}{'a':>10s}{'rows':>10s}{'optimum':>10s}")
    for name in MOBILITY:
        verdicts = [judged_exactly(name, k) for k in range(each)]
        there = [(v, i) for v, i in verdicts if v is not None]
        solved = [(v, i) for v, i in there if v.status == 0]
        bad = [(v, i) for v, i in solved if not v.worst <= bound(name, i)]
        wrong += len(bad)
        figures = [
            max((getattr(v, key) for v, _ in solved), default=0.0)
            for key in ("acceleration", "row", "stationarity")
        ]
        print(f"{name:22s}{len(solved):8d}{len(there):6d}" + "".join(f"{x:10.1e}" for x in figures))
        for verdict, inputs in bad:
            print("   wrong:", verdict, f"noise {inputs.noise:.0e}, level {inputs.level:.0e}")
    print(f"{wrong} wrong")
    return int(wrong > 0)


def bound(name: str, inputs: Inputs) -> float:
    """Return the accepted error: the tolerance, and what two ways to close a state differ by."""
    return 4 * case(name).controller.tolerance + 10 * inputs.moved(case(name)) ** 2


if __name__ == "__main__":
    raise SystemExit(main())
