"""Random constrained problems, their solution by singular values, and compiled C."""

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

CASES = [(4, 6, 4), (6, 6, 3), (3, 5, 0), (0, 4, 0), (5, 4, 2), (2, 7, 2), (1, 1, 1)]
"""Rows, columns and rank of A: full, redundant, vanishing, absent."""

SINGULAR_TOL = 1e-9  # of the references: singular values below it are zero


def problem(rng: np.random.Generator, m: int, n: int, r: int) -> dict[str, np.ndarray]:
    """Return M, h, f, A of rank r and c; redundant rows contradict each other."""
    X = rng.standard_normal((n, n))
    return {
        "M": X @ X.T + np.eye(n),
        "h": rng.standard_normal(n),
        "f": rng.standard_normal(n),
        "A": rng.standard_normal((m, r)) @ rng.standard_normal((r, n)),
        "c": rng.standard_normal(m),
    }


def with_zero_and_repeated_rows(p: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the problem with a row of zeros in front and the last row once more behind."""
    rows = [np.zeros((1, p["A"].shape[1])), p["A"], p["A"][-1:]]
    biases = [[0.0], p["c"], p["c"][-1:]]
    return p | {"A": np.vstack(rows), "c": np.concatenate(biases)}


def null_columns(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of null(A) from a singular value decomposition."""
    if not A.size:
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.sum(s > SINGULAR_TOL) :].T


def pinv(A: np.ndarray) -> np.ndarray:
    return np.linalg.pinv(A, SINGULAR_TOL)


def reference_motion(M, h, f, A, c) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (a, f_c, lam): `a = -A⁺c + Z y`, then what the equations of motion lack."""
    Z, a_0 = null_columns(A), -pinv(A) @ c
    a = a_0 + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (f - h - M @ a_0))
    f_c = M @ a + h - f
    return a, f_c, pinv(A).T @ f_c


def as_function(
    build: Callable[..., Sequence[ca.SX] | Sequence[ca.MX]],
    kind: type,
    shapes: dict[str, tuple[int, ...]],
    outputs: Sequence[str] = ("a", "f_c", "lam"),
) -> ca.Function:
    """Return `build(*symbols)` as a Function with these inputs and outputs."""
    symbols = [kind.sym(name, *shape) for name, shape in shapes.items()]
    return ca.Function("law", symbols, list(build(*symbols)), list(shapes), list(outputs))


def motion_shapes(m: int, n: int) -> dict[str, tuple[int, ...]]:
    return {"M": (n, n), "h": (n,), "f": (n,), "A": (m, n), "c": (m,)}


def numbers(function: ca.Function, **values: np.ndarray) -> dict[str, np.ndarray]:
    """Call a Function; columns come back as vectors."""
    found = {key: value.full() for key, value in function(**values).items()}
    return {key: x.ravel() if x.shape[1] == 1 else x for key, x in found.items()}


def assert_derivatives_hold(function: ca.Function, values: dict[str, np.ndarray], name: str):
    """Compare the Jacobian of the first output along one input with central differences."""
    inputs = [ca.MX.sym(key, *function.size_in(key)) for key in values]
    first = function.call(inputs)[0]
    jacobian = ca.Function("slopes", inputs, [ca.jacobian(first, inputs[list(values).index(name)])])
    exact = jacobian.call(list(values.values()))[0].full()
    step = 1e-6  # error step² + 1e-16 / step
    direction = np.random.default_rng(99).standard_normal(values[name].shape)
    ahead = function(**(values | {name: values[name] + step * direction}))
    behind = function(**(values | {name: values[name] - step * direction}))
    key = function.name_out(0)
    slope = (ahead[key] - behind[key]).full().ravel() / (2 * step)
    found = exact @ direction.ravel(order="F")
    assert np.abs(slope).max() > 1e-3
    np.testing.assert_allclose(found, slope, atol=1e-7 * (1 + np.abs(slope).max()))
