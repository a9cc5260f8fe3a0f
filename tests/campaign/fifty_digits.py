"""Answers judged in 50 digits: the exact acceleration of the control, and its exact optimality.

    cd tests; python -m campaign.fifty_digits --problems 1000

The measured state is closed in 50 digits. The rank of the rows is the mechanism's known one: the
number of coordinates less its mobility; which rows are taken is found by pivoting, and any choice
of that many independent rows gives the same motion. The control that was returned then has one
exact acceleration a, and the QP in the actuator forces has an exact gradient.
"""

import argparse
import functools
from dataclasses import dataclass, replace

import numpy as np
from flint import ctx
from scipy.linalg import qr

from campaign.bodies_by_hand import HeldBodyMechanics, ParticlesMechanics
from campaign.case import Case, Inputs
from campaign.cases import case
from campaign.exact_mechanics import (
    ExactHeldBody,
    ExactLinkage,
    ExactParticles,
    arb,
    arb_mat,
    col,
    entries,
    zeros,
)
from campaign.mechanics import Array
from campaign.planar_linkages import LinkageMechanics
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
EXACT = {
    LinkageMechanics: lambda m: ExactLinkage(m.linkage),
    HeldBodyMechanics: lambda m: ExactHeldBody(m.body),
    ParticlesMechanics: lambda m: ExactParticles(m.chain),
}


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


@functools.cache
def exact_of(name: str):
    """Return the exact mechanics of a case."""
    mechanics = case(name).mechanics
    return EXACT[type(mechanics)](mechanics)


@functools.cache
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
    exact = exact_of(name)
    rank = each.mechanics.nv - MOBILITY[name]
    q, v, chosen = closed_state(exact, each, inputs, rank)
    A, c = taken(exact.rows(q), chosen), taken(exact.bias(q, v), chosen)
    M, f, B = exact.inertia(q), exact.force(q, v), exact.actuation(q)
    T, t = motion(M, f, B, A, c)
    u = col(arb(float(x)) for x in solution.u)
    truth = T * u + t
    size = np.asarray(each.size)
    a, best = np.asarray(solution.a) / size, numbers(truth) / size
    scale = np.abs(best).max() + np.abs(numbers(t) / size).max()
    exact_a = col(arb(float(x)) for x in solution.a)
    residual = numbers(exact.rows(q) * exact_a + exact.bias(q, v))
    lengths = np.linalg.norm(matrix(exact.rows(q)) * size, axis=1)
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


def closed_state(exact, each: Case, inputs: Inputs, rank: int):
    """Return q, v on the manifold to 50 digits, and the rows that were taken.

    Newton's steps begin at the pose that was closed in double precision, where the rows that are
    redundant are known to be so.
    """
    q = [arb(float(x)) for x in inputs.closed_q]
    metric = [arb(float(x)) ** 2 for x in each.metric]
    chosen = pivots(matrix(exact.rows(q)) * each.metric, rank)
    for _ in range(CLOSING_STEPS):
        phi = taken(exact.residual(q), chosen)
        gap = np.abs(numbers(phi)).max() / each.length
        if gap < CLOSED:
            break
        step = across(taken(exact.rows(q), chosen), metric, phi)
        q = [(x - dx).mid() for x, dx in zip(q, step, strict=True)]
    everything = np.abs(numbers(exact.residual(q))).max() / each.length
    assert everything < 1e-10, f"a row that was not taken is open by {everything:.1e}"
    v = [arb(float(x)) for x in inputs.v]
    A = taken(exact.rows(q), chosen)
    v = [(x - dx).mid() for x, dx in zip(v, across(A, metric, A * col(v)), strict=True)]
    return q, v, chosen


def pivots(A: Array, rank: int) -> list[int]:
    """Return as many independent rows as the rank says."""
    lengths = np.linalg.norm(A, axis=1)
    _, _, order = qr((A / np.maximum(lengths, 1e-300)[:, None]).T, pivoting=True, mode="economic")
    return sorted(order[:rank])


def across(A: arb_mat, metric, right: arb_mat) -> list[arb]:
    """Return the shortest x with `A x = right`, in a metric."""
    weighted = zeros(A.ncols(), A.nrows())
    for i in range(A.ncols()):
        for j in range(A.nrows()):
            weighted[i, j] = metric[i] * A[j, i]
    return entries(weighted * (A * weighted).solve(right))


def motion(M, f, B, A, c) -> tuple[arb_mat, arb_mat]:
    """Return T, t of `a = T p + t` from `M a - Aᵀ lam = f + B p`, `A a = -c`."""
    nv, m, nu = M.nrows(), A.nrows(), B.ncols()
    K, right = zeros(nv + m, nv + m), zeros(nv + m, nu + 1)
    for i in range(nv):
        for j in range(nv):
            K[i, j] = M[i, j]
        for k in range(m):
            K[i, nv + k], K[nv + k, i] = -A[k, i], A[k, i]
        for k in range(nu):
            right[i, k] = B[i, k]
        right[i, nu] = f[i, 0]
    for k in range(m):
        right[nv + k, nu] = -c[k, 0]
    found = K.solve(right)
    T, t = zeros(nv, nu), zeros(nv, 1)
    for i in range(nv):
        t[i, 0] = found[i, nu]
        for k in range(nu):
            T[i, k] = found[i, k]
    return T, t


def optimality(each: Case, inputs: Inputs, state, found, clipped: bool) -> tuple[float, float]:
    """Return stationarity and complementarity of the exact QP, relative to the problem's size.

    Where references were clipped, the errors without actuator forces are shortened by one factor.
    """
    (q, v), (T, t, u) = state, found
    (task,) = each.tasks
    reference = {key: inputs.ref[place] for key, place in each.controller.reference_slices.items()}
    kp, kd = arb(float(task.kp)), arb(float(2 * np.sqrt(task.kp)))
    right, roots = [], []
    for i in range(len(q)):
        now = arb(float(reference["posture.a"][i]))
        now += kd * (arb(float(reference["posture.v"][i])) - v[i])
        right.append(now + kp * (arb(float(reference["posture.q"][i])) - q[i]))
        roots.append(arb(float(task.weight[i])).sqrt())
    nu = T.ncols()
    E, e = zeros(len(q), nu), zeros(len(q), 1)
    errors = [t[i, 0] - right[i] for i in range(len(q))]
    excess = arb(1)
    for asked, limit in zip(right, each.controller.stages.scales.required, strict=True):
        share = abs(asked) / arb(float(limit)) if clipped and np.isfinite(limit) else arb(0)
        excess = share if float(share.mid()) > float(excess.mid()) else excess
    for i in range(len(q)):
        e[i, 0] = roots[i] * errors[i] / excess
        for k in range(nu):
            E[i, k] = roots[i] * T[i, k]
    H, g = E.transpose() * E, E.transpose() * e
    for k, r in enumerate(each.controller.force_weights.actuators):
        H[k, k] += arb(float(r))
    gradient = numbers(H * u + g)
    p, root = numbers(u), np.linalg.cholesky(matrix(H))
    distance = np.linalg.norm(np.linalg.solve(root, numbers(g)))
    from_optimum = np.linalg.norm(np.linalg.solve(root, gradient))
    size = from_optimum + distance + np.linalg.norm(numbers(e)) + 1e-150
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


def taken(A: arb_mat, chosen: list[int]) -> arb_mat:
    """Return some rows."""
    B = zeros(len(chosen), A.ncols())
    for i, row in enumerate(chosen):
        for j in range(A.ncols()):
            B[i, j] = A[row, j]
    return B


def matrix(A: arb_mat) -> Array:
    """Return a matrix in double precision."""
    return np.array([[float(A[i, j].mid()) for j in range(A.ncols())] for i in range(A.nrows())])


def numbers(column: arb_mat) -> Array:
    """Return a column in double precision."""
    return matrix(column).ravel()


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
