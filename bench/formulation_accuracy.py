"""How many digits each formulation keeps, where inertias differ or rows are nearly parallel.

    python -m bench.formulation_accuracy

Random problems with 8 joints and 5 rows of rank 4 are solved in double precision and in 60
digits. Printed are the worst relative errors of `a` and of `f_c`, norms of the mechanism's units.
"""

from collections.abc import Callable

import casadi as ca
import mpmath
import numpy as np

from bench.formulation_cases import VARIANTS, on_matrices

JOINTS, ROWS, RANK = 8, 5, 4
PROBLEMS = 20
DIGITS = 60
RATIOS = (0, 4, 8, 12)  # powers of ten between the heaviest and the lightest joint
ANGLES = (0, 2, 4, 6)  # powers of ten below one of the angle between two rows

Problem = dict[str, np.ndarray]


def heavy_and_light(rng: np.random.Generator, power: int) -> Problem:
    """Return a problem whose joints have inertias between 10^(-power/2) and 10^(power/2)."""
    problem = _random(rng)
    scale = 10.0 ** rng.permutation(np.linspace(-power / 4, power / 4, JOINTS))
    return problem | {"M": scale[:, None] * problem["M"] * scale}


def nearly_parallel(rng: np.random.Generator, power: int) -> Problem:
    """Return a problem in which two independent rows differ by an angle of about 10^-power."""
    problem = _random(rng)
    problem["G"][1] = problem["G"][0] + 2.0 ** -np.round(power * np.log2(10)) * problem["G"][1]
    return problem


def reference(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return (a, f_c) from the independent rows `G`, in many digits."""
    n, r = JOINTS, RANK
    with mpmath.workdps(DIGITS):
        K, rhs = mpmath.zeros(n + r), mpmath.zeros(n + r, 1)
        for i in range(n):
            rhs[i] = mpmath.mpf(problem["f"][i]) - mpmath.mpf(problem["h"][i])
            for j in range(n):
                K[i, j] = mpmath.mpf(problem["M"][i, j])
        for k in range(r):
            rhs[n + k] = -mpmath.mpf(problem["g"][k])
            for j in range(n):
                K[n + k, j] = mpmath.mpf(problem["G"][k, j])
                K[j, n + k] = -K[n + k, j]
        solution = list(mpmath.lu_solve(K, rhs))
        force = mpmath.matrix(problem["G"].tolist()).T * mpmath.matrix(solution[n:])
    return np.array(solution[:n], dtype=float), np.array(list(force), dtype=float)


def worst_error(function: ca.Function, problems: list[Problem]) -> float:
    """Return the larger of the worst relative errors of a and f_c."""
    worst = 0.0
    for problem in problems:
        rows = {"A": problem["F"] @ problem["G"], "c": problem["F"] @ problem["g"]}
        outputs = function(**{key: problem[key] for key in "Mhf"}, **rows)
        for key, exact in zip(("a", "f_c"), reference(problem), strict=True):
            error = outputs[key].full().ravel() - exact
            worst = max(worst, float(np.linalg.norm(error) / np.linalg.norm(exact)))
    return worst


def table(title: str, heads: list[str], samples: list[list[Problem]]) -> str:
    """Return a Markdown table of the errors of all variants, a column for each list."""
    lines = [f"| {title} | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for name in VARIANTS:
        function = on_matrices(name, JOINTS, ROWS)
        errors = [worst_error(function, problems) for problems in samples]
        lines.append(f"| `{name}` | {' | '.join(f'{error:.0e}' for error in errors)} |")
    return "\n".join(lines) + "\n"


def samples(make: Callable[[np.random.Generator, int], Problem], power: int) -> list[Problem]:
    """Return random problems of one kind."""
    rng = np.random.default_rng(0)
    return [make(rng, power) for _ in range(PROBLEMS)]


def _random(rng: np.random.Generator) -> Problem:
    """Return a problem in small integers: the rank of A is exact, and so are its products."""
    X = rng.standard_normal((JOINTS, JOINTS))
    F = np.vstack([np.eye(RANK), rng.integers(-1, 2, (ROWS - RANK, RANK))]).astype(float)
    return {
        "M": X @ X.T + np.eye(JOINTS),
        "h": rng.standard_normal(JOINTS),
        "f": rng.standard_normal(JOINTS),
        "F": F,
        "G": rng.integers(-3, 4, (RANK, JOINTS)).astype(float),
        "g": rng.integers(-3, 4, RANK).astype(float),
    }


if __name__ == "__main__":
    uneven = [samples(heavy_and_light, power) for power in RATIOS]
    print(table("inertias differ by", [f"1e{power}" for power in RATIOS], uneven))
    parallel = [samples(nearly_parallel, power) for power in ANGLES]
    print(table("rows differ by", [f"1e-{power} rad" for power in ANGLES], parallel))
