"""The solvers in the generated C, against a second method and the optimality conditions."""

import numpy as np
import pytest
from codegen_problems import Array, least_distance_controller, reference

import mbcasadi.codegen as codegen
from mbcasadi.description.qp_stages import ZERO_BOUND
from mbcasadi.description.status import Status
from mbcasadi.qp.solver import controller_fun

N, M = 8, 20
PROBLEMS = 150
# Errors relative to the length of the solution, on rows of unit length; DAQP's tolerance is 1e-11.
SOLUTION_TOL = 1e-9
UNBOUNDED = 1e30
NO_DAQP = """
#include <daqp/daqp.h>
static int no_daqp(DAQPWorkspace *work) { (void)work; return EXIT_CYCLE; }
#define daqp_ldp no_daqp
"""


class Solver:
    """The loaded controller as a plain NumPy function."""

    def __init__(self, folder, method):
        chosen = "mbcasadi" if method == "mbcasadi" else "daqp"
        controller = least_distance_controller(N, M, f"by_{method}")
        self.law, self.tolerance = controller_fun("law", controller.stages, "daqp"), 1e-9
        if method == "python":
            return
        project = codegen.export_c(controller, folder / method, solver=chosen)
        (folder / "no_daqp.h").write_text(NO_DAQP)
        stops = ("-include", str(folder / "no_daqp.h")) if method == "daqp_stops" else ()
        self.law = project.load(flags=("-O2", *stops))
        self.tolerance = 1e-11 if method == "daqp" else 1e-14

    def __call__(self, A: Array, lower: Array, upper: Array, active: Array):
        x, active, status, lam = (np.array(v) for v in self.law(A, lower, upper, active))
        return x.ravel(), active.ravel(), int(status.item()), lam.ravel()


@pytest.fixture(scope="module", params=["mbcasadi", "daqp", "daqp_stops", "python"])
def solver(request, tmp_path_factory):
    """Return the default's solver in C, DAQP, one that stops early, and the Function in Python."""
    return Solver(tmp_path_factory.mktemp("ldp"), request.param)


def around(rng, A: Array) -> tuple[Array, Array, Array]:
    """Return the rows at a random point, and bounds that hold there."""
    rows = A @ (3 * rng.normal(size=A.shape[1]))
    lower = rows - rng.exponential(size=len(rows)) * (rng.random(len(rows)) < 0.7)
    return rows, lower, rows + rng.exponential(size=len(rows))


def plain(rng):
    A = rng.normal(size=(M, N))
    _, lower, upper = around(rng, A)
    return A, lower, upper


def one_sided_rows(rng):
    A, lower, _ = plain(rng)
    return A, lower, np.full(M, UNBOUNDED)


def degenerate(rng):
    """Far more rows than unknowns meet in one point."""
    A = rng.normal(size=(M, N))
    rows, lower, upper = around(rng, A)
    return A, np.where(rng.random(M) < 0.6, rows, lower), upper


def redundant(rng):
    A = rng.normal(size=(M, N))
    A[M // 2 :] = A[: M // 2] * rng.choice([-2.0, -1.0, 1.0, 0.5], size=(M // 2, 1))
    return A, *around(rng, A)[1:]


def dependent_equalities(rng):
    A = rng.normal(size=(M, N))
    A[4:8] = rng.normal(size=(4, 4)) @ A[:4]
    rows, lower, upper = around(rng, A)
    lower[:8] = upper[:8] = rows[:8]
    return A, lower, upper


def masked_rows(rng):
    """Rows of contacts that are switched off are zero, their bounds wide or missed by rounding."""
    A, lower, upper = plain(rng)
    is_off = rng.random(M) < 0.4
    A[is_off] = 0.0
    least = np.where(rng.random(M) < 0.5, -1e6, 0.1 * ZERO_BOUND)
    return A, np.where(is_off, least, lower), np.where(is_off, 0.1 * ZERO_BOUND, upper)


def nearly_parallel(rng):
    A = rng.normal(size=(M, N))
    A[M // 2 :] = A[: M // 2] + 10.0 ** rng.uniform(-7, -2) * rng.normal(size=(M // 2, N))
    return A, *around(rng, A)[1:]


def badly_scaled_rows(rng):
    A, lower, upper = plain(rng)
    scale = 10.0 ** rng.uniform(-6, 6, size=M)
    return A * scale[:, None], lower * scale, upper * scale


def large(rng):
    A, lower, upper = plain(rng)
    return A, 1e6 * lower, 1e6 * upper


FEASIBLE = [
    plain, one_sided_rows, degenerate, redundant, dependent_equalities, masked_rows,
    nearly_parallel, badly_scaled_rows, large,
]  # fmt: skip


def residual(A, lower, upper, x, lam) -> float:
    """Return the worst violation of the optimality conditions, relative to the solution.

    Rows of unit length; stationarity `x + Aᵀ lam = 0`, feasibility, and complementarity with
    the signs of the multipliers. The problem is strictly convex: zero proves the optimum.
    """
    norms = np.linalg.norm(A, axis=1)
    norms[norms == 0] = 1.0
    size = max(1.0, float(np.max(np.abs(x))))
    below, above = (lower - A @ x) / norms, (A @ x - upper) / norms
    lam_unit = lam * norms
    slack = np.where(lam_unit > 0, -above, -below) * (lam_unit != 0)
    return max(
        float(np.max(np.abs(x + A.T @ lam))) / size,
        float(np.max(below)) / size,
        float(np.max(above)) / size,
        float(np.max(np.abs(slack))) / size,
    )


@pytest.mark.parametrize("family", FEASIBLE)
@pytest.mark.every(5)
def test_feasible_problems_are_solved_to_the_optimum(family, solver):
    rng = np.random.default_rng(7)
    compared = 0
    for k in range(PROBLEMS):
        A, lower, upper = family(rng)
        warm = rng.choice([-1.0, 0.0, 1.0], size=M) if k % 2 else np.zeros(M)
        x, active, status, lam = solver(A, lower, upper, warm)
        assert status == 0, f"problem {k}"
        assert residual(A, lower, upper, x, lam) < SOLUTION_TOL, f"problem {k}"
        assert np.all(active[lam > 0] == 1)
        assert np.all(active[lam < 0] == -1)
        second = reference(A, lower, upper)
        if second is not None:  # the second method gives up on some degenerate problems
            compared += 1
            assert np.max(np.abs(x - second)) < SOLUTION_TOL * max(1.0, np.max(np.abs(second)))
    assert compared > 0.9 * PROBLEMS


@pytest.mark.parametrize("apart", [1e-1, 1e-3, 1e-5])
def test_a_sum_of_nearly_parallel_rows_is_found(apart, solver):
    """What a row may be violated by is one over the distance of the rows times as much in x."""
    rng = np.random.default_rng(9)
    for k in range(PROBLEMS):
        A = rng.normal(size=(M, N))
        A[1:4] = A[0] + apart * rng.normal(size=(3, N))
        expected = rng.uniform(0.1, 1, 4) @ A[:4]
        lower, upper = (
            A @ expected - rng.exponential(size=M),
            A @ expected + rng.exponential(size=M),
        )
        lower[:4] = A[:4] @ expected
        x, _, status, lam = solver(A, lower, upper, np.zeros(M))
        assert status == 0, f"problem {k}"
        assert residual(A, lower, upper, x, lam) < SOLUTION_TOL, f"problem {k}"
        assert np.max(np.abs(x - expected)) < 100 * solver.tolerance / apart, f"problem {k}"


def contradicting_rows(rng):
    A, lower, upper = plain(rng)
    A[1], gap = -A[0], 10.0 ** rng.uniform(-6, 1)
    lower[0], lower[1] = 1.0, gap - 1.0
    upper[:2] = UNBOUNDED
    return A, lower, upper


def contradicting_combination(rng):
    """A positive combination of the first N rows is the negative of the next one."""
    A = rng.normal(size=(M, N))
    rows = A @ rng.normal(size=N)
    weights = rng.random(N) + 0.1
    A[N] = -weights @ A[:N]
    lower = np.full(M, -UNBOUNDED)
    lower[:N] = rows[:N]
    lower[N] = -weights @ rows[:N] + 0.01
    return A, lower, np.full(M, UNBOUNDED)


@pytest.mark.parametrize("family", [contradicting_rows, contradicting_combination])
def test_an_infeasible_problem_is_never_called_solved(family, solver):
    rng = np.random.default_rng(8)
    for k in range(PROBLEMS):
        warm = rng.choice([-1.0, 0.0, 1.0], size=M) if k % 2 else np.zeros(M)
        x, active, status, lam = solver(*family(rng), warm)
        assert status == 2, f"problem {k}"
        assert not np.any(np.concatenate([x, active, lam])), f"problem {k}"


REFUSED, CONTRADICTORY, SOLVED = Status.FAILED, Status.INFEASIBLE, Status.SOLVED
ENTRIES = {  # part, entry, value, status
    "NaN in a row": (0, (2, 3), np.nan, REFUSED),
    "infinity in a row": (0, (2, 3), np.inf, REFUSED),
    "minus infinity in a row": (0, (2, 3), -np.inf, REFUSED),
    "squares that overflow": (0, (2, 3), 1e200, REFUSED),
    "a zero row below its bound": (0, 5, 0.0, CONTRADICTORY),
    "NaN below": (1, 4, np.nan, REFUSED),
    "NaN above": (2, 4, np.nan, REFUSED),
    "a floor at infinity": (1, 4, np.inf, CONTRADICTORY),
    "a ceiling at minus infinity": (2, 4, -np.inf, CONTRADICTORY),
    "crossed bounds": (1, 4, 1e3, CONTRADICTORY),
    "no floor": (1, 4, -np.inf, SOLVED),
    "no ceiling": (2, 4, np.inf, SOLVED),
}


def around_a_point():
    """Return rows and bounds on both sides of a point, positive ones in the sixth row."""
    rng = np.random.default_rng(10)
    A, point = rng.normal(size=(M, N)), 3 * rng.normal(size=N)
    A[5] *= np.sign(A[5] @ point)
    lower, upper = A @ point - 0.5, A @ point + 0.5
    lower[5], upper[5] = 0.5 * A[5] @ point, 2 * A[5] @ point
    return [A, lower, upper]


@pytest.mark.parametrize("case", ENTRIES)
def test_what_is_no_problem_is_refused_without_a_word(case, solver):
    part, place, value, expected = ENTRIES[case]
    given = around_a_point()
    given[part][place] = value
    x, active, status, lam = solver(*given, np.zeros(M))
    assert status == expected
    if expected != SOLVED:
        assert not np.any(np.concatenate([x, active, lam]))
    else:
        wide = [np.clip(v, -UNBOUNDED, UNBOUNDED) for v in given]
        assert residual(*wide, x, lam) < SOLUTION_TOL


def test_an_equality_crossed_by_rounding_has_its_solution(solver):
    A, lower, upper = around_a_point()
    lower[0] += 0.5
    upper[0] = lower[0] - 1e-12
    x, _, status, _ = solver(A, lower, upper, np.zeros(M))
    assert status == SOLVED
    assert A[0] @ x == pytest.approx(lower[0], abs=1e-10)


def test_nan_in_the_warm_start_is_a_cold_start(solver):
    A, lower, upper = plain(np.random.default_rng(12))
    x, _, status, lam = solver(A, lower, upper, np.full(M, np.nan))
    assert status == 0
    assert residual(A, lower, upper, x, lam) < SOLUTION_TOL


@pytest.mark.parametrize(("n", "m"), [(3, 0), (1, 1), (1, 5), (0, 0)])
def test_problems_of_any_size_work(n, m, tmp_path):
    law = codegen.export_c(least_distance_controller(n, m), tmp_path / "out").load()
    A, ones = np.ones((m, n)), np.ones(m)
    x, _, status, *_ = law(A, ones, 2 * ones, np.zeros(m))
    assert float(status) == 0
    assert np.allclose(np.array(x).ravel(), 1.0 if m else 0.0, atol=SOLUTION_TOL)
