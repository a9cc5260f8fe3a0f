"""How far two programs of one Function may differ, from the Function itself.

The C takes sines of its own, which differ from the C library's in the last bits. A mechanism near a
singular pose amplifies that, as it amplifies rounding errors of its inputs: what these change is
measured, and the C may differ by some times as much.
"""

from collections.abc import Mapping

import casadi as ca
import numpy as np

LAST_BITS = 4e-16  # of an angle
TRIALS = 4
MARGIN = 10.0  # of errors in many operations beside those in the inputs of a few trials
OWN = 1e-12  # rounding errors of the operations themselves, relative to a size


def assert_same_program(
    function: ca.Function, program: ca.Function, values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Assert that two mapped Functions agree to what rounding does; return the first one's outputs.

    Args:
        function, program: by `map`, with the same inputs and outputs.
        values: of the inputs, one state in each column.
    """
    rng, names = np.random.default_rng(77), function.name_out()
    ours = {name: np.array(out) for name, out in zip(names, _call(function, values), strict=True)}
    changes = {name: np.zeros_like(out) for name, out in ours.items()}
    for _ in range(TRIALS):
        moved = {
            key: x + LAST_BITS * (1 + np.abs(x)) * rng.choice([-1.0, 1.0], x.shape)
            for key, x in values.items()
        }
        for name, out in zip(names, _call(function, moved), strict=True):
            with np.errstate(invalid="ignore"):
                change = np.nan_to_num(np.abs(np.array(out) - ours[name]), nan=0.0)
            changes[name] = np.maximum(changes[name], change)
    for name, out in zip(names, _call(program, values), strict=True):
        theirs, finite = np.array(out), np.isfinite(ours[name])
        np.testing.assert_array_equal(np.isfinite(theirs), finite, err_msg=name)
        own, other = np.where(finite, ours[name], 0.0), np.where(finite, theirs, 0.0)
        size = np.maximum(1.0, np.abs(own).max(axis=0, initial=0.0))
        excess = np.abs(other - own) / (OWN * size + MARGIN * changes[name])
        assert np.all(excess <= 1.0), f"{name}: {excess.max(initial=0.0)} times what rounding does"
    return ours


def _call(function: ca.Function, values: Mapping[str, np.ndarray]) -> list[ca.DM]:
    results: list[ca.DM] = function.call([ca.DM(x) for x in values.values()])
    return results
