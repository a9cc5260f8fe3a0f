"""A network above inverse dynamics balances a pole, as one C; it is trained by its example only."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are
from support.examples import example

LENGTH = 0.5  # m, of a pendulum like the pole, about
SMALL = 0.1


def linear_network(names):
    """Return weights that nearly ask for the regulator of a cart with a point on a pole."""
    A, B = np.zeros((4, 4)), np.array([[0.0], [0.0], [1.0], [-1 / LENGTH]])
    A[:2, 2:], A[3, 1] = np.eye(2), 9.81 / LENGTH
    K = B.T @ solve_continuous_are(A, B, np.diag([4.0, 10.0, 1.0, 1.0]), np.eye(1))
    first = np.zeros((names["HIDDEN"], 4))
    first[0] = -SMALL * K[0] * names["SCALE"] / names["LARGEST"]
    last = np.eye(names["HIDDEN"])[0] / SMALL
    return np.concatenate([first.ravel("F"), last])


@pytest.mark.long
def test_a_policy_and_inverse_dynamics_hold_a_pole_as_one_c(tmp_path):
    names = example(48)
    weights, rewards = linear_network(names), []

    def known(env, generations):
        assert generations == 30
        rewards.append(names["episode"](env, weights, 0))
        rewards.append(names["episode"](env, np.zeros_like(weights), 0))
        moved = names["train"](env, generations=1, pairs=1)
        assert np.all(np.isfinite(moved))
        assert np.abs(moved).max() < 3.0
        return weights

    names["train"] = names["learned"]
    names["main"].__globals__["learned"] = known
    found = names["main"](str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").stat().st_size > 15_000
    assert rewards[0] > 140.0 > 100.0 > rewards[1]  # without a policy it falls
    lean = np.abs(found["lean"])
    assert lean.max() < 0.3
    assert lean[-1] < 0.03
    assert found["whole"].every == names["TICKS"]
