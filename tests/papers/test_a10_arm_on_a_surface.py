"""Force on the surface of A10's arm, with and without force control.

The reference is NumPy on closed forms of the arm that were written for this test: uniform rods
at absolute angles, `A` as the paper prints it, and the paper's `M = W Wᵀ` and SVD.
"""

import numpy as np
import pytest
from support.examples import example, results

ARM = example(6)
MASS, K_P, K_D, WANTED = 5.0, 3.0, 5.0, 50.0  # kg, 1/s, 1/s, N: A10, section 5, l = 1 m
INTEGRATION = 1e-6  # N and rad, of a run at rtol 1e-9


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return results(ARM, tmp_path_factory.mktemp("figure"))


def closed_forms(q, v):
    """M, C v, A and `Ȧ v` of the paper's arm."""
    first, last = q[1], q[1] + q[2]
    w = np.array([v[1], v[1] + v[2]])
    to_absolute = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]])
    ml = MASS / 2
    absolute = np.array(
        [
            [3 * MASS, 3 * ml * np.cos(first), ml * np.cos(last)],
            [3 * ml * np.cos(first), 4 / 3 * MASS, ml * np.cos(q[2])],
            [ml * np.cos(last), ml * np.cos(q[2]), MASS / 3],
        ]
    )
    coriolis = np.array(
        [
            -3 * ml * np.sin(first) * w[0] ** 2 - ml * np.sin(last) * w[1] ** 2,
            -ml * np.sin(q[2]) * w[1] ** 2,
            ml * np.sin(q[2]) * w[0] ** 2,
        ]
    )
    A = np.array([1, np.cos(last) + np.cos(first), np.cos(last)])
    bias = -np.sin(first) * w[0] ** 2 - np.sin(last) * w[1] ** 2
    return to_absolute.T @ absolute @ to_absolute, to_absolute.T @ coriolis, A, bias


def theta(q):
    """The tip's place and the last link's lean, by samples."""
    last = q[:, 1] + q[:, 2]
    return np.array([np.cos(q[:, 1]) + np.cos(last), last - 1.5 * np.pi])


def path(t):
    """What the paper wants of them."""
    return np.array(
        [0.3 * np.sin(0.6 * np.pi * t) + 0.5, np.pi / 6 * np.sin(np.pi * t) + np.pi / 12]
    )


def force_of_the_motion_alone(q, v):
    """lam at `u_o = 0`: `f` in M null(A), so `A a = -Ȧ v` asks `A M⁻¹ Aᵀ lam = Ȧ v - A M⁻¹ C v`."""
    M, coriolis, A, bias = closed_forms(q, v)
    return (bias - A @ np.linalg.solve(M, coriolis)) / (A @ np.linalg.solve(M, A))


def test_the_twin_is_the_papers_arm():
    from_twin = ARM["prr_arm"].system()
    rng = np.random.default_rng(10)
    for _ in range(5):
        q, v = rng.uniform(-3, 3, 3), rng.uniform(-3, 3, 3)
        M, coriolis, A, bias = closed_forms(q, v)
        np.testing.assert_allclose(from_twin.mass_matrix(q), M, atol=1e-13)
        np.testing.assert_allclose(
            from_twin.coriolis_matrix(q, v) @ v, coriolis[:, None], atol=1e-12
        )
        np.testing.assert_allclose(from_twin.constraint_jacobian(q), A[None], atol=1e-14)
        assert float(from_twin.constraint_bias(q, v)) == pytest.approx(bias, abs=1e-12)


def test_without_force_control_the_motion_makes_the_force(runs):
    for name, least, most in (("free", -0.10, 63.17), ("above", -16.60, 15.05)):
        run = runs[name]
        states = zip(run["q"], run["v"], strict=True)
        expected = [force_of_the_motion_alone(q, v) for q, v in states]
        np.testing.assert_allclose(run["lam"], expected, atol=INTEGRATION)
        assert run["lam"].min() == pytest.approx(least, abs=0.005)
        assert run["lam"].max() == pytest.approx(most, abs=0.005)


def test_with_force_control_the_force_is_the_wanted_one_and_the_motion_the_same(runs):
    free, held = runs["free"], runs["held"]
    assert np.abs(free["lam"] - WANTED).max() > 49.0
    np.testing.assert_allclose(held["lam"], WANTED, atol=INTEGRATION)
    np.testing.assert_allclose(held["q"], free["q"], atol=INTEGRATION)
    np.testing.assert_allclose(held["v"], free["v"], atol=INTEGRATION)


def test_the_arm_follows_the_path_and_its_error_decays_at_exactly_the_gain(runs):
    """(41) corrected: `dε/dt = -(Γ_r + K_d) ε` with skew Γ_r keeps `‖ε‖ = ‖ε(0)‖ exp(-K_d t)`."""
    free = runs["free"]
    early = free["t"] < 2.0  # down to 1e-4
    expected = free["epsilon"][0] * np.exp(-K_D * free["t"][early])
    assert free["epsilon"][0] > 1.0
    np.testing.assert_allclose(free["epsilon"][early], expected, atol=INTEGRATION)
    apart = np.abs(theta(free["q"]) - path(free["t"])).max(axis=0)
    assert apart[0] > 0.1
    assert apart[free["t"] > 5.0].max() < 1e-5


def test_the_quasi_forces_are_the_papers_and_least_without_force_control(runs):
    """(28) with the Cholesky factor and the SVD of `A W⁻ᵀ`; `f` of the paper holds gravity."""
    gravity = ARM["prr_arm"].system().gravity_force
    for run in runs.values():
        for k in range(0, 1451, 50):
            q, v = run["q"][k], run["v"][k]
            M, _, A, _ = closed_forms(q, v)
            W = np.linalg.cholesky(M)
            V = np.linalg.svd(np.linalg.solve(W, A)[None])[2].T
            u = V.T @ np.linalg.solve(W, run["f"][:, k] - np.array(gravity(q)).ravel())
            assert run["u_o"][k] == pytest.approx(abs(u[0]), abs=INTEGRATION)
            assert run["u_r"][k] == pytest.approx(np.linalg.norm(u[1:]), rel=1e-9)
    free, held = runs["free"], runs["held"]
    assert free["u_o"].max() < INTEGRATION
    assert held["u_o"].max() > 10.0
    np.testing.assert_allclose(held["u_r"], free["u_r"], atol=1e-4)


def gauge(q):
    """W by Cholesky and a V2 that is smooth in q: the mirror image of two axes."""
    M, _, A, _ = closed_forms(q, np.zeros(3))
    W = np.linalg.cholesky(M)
    normal = np.linalg.solve(W, A)
    between = normal / np.linalg.norm(normal) + [1, 0, 0]
    mirror = np.eye(3) - 2 * np.outer(between, between) / (between @ between)
    return W, mirror[:, 1:]


def reduced_command(t, q):
    """`s = B⁻¹ (dθ_d/dt - K_p θ̃)`, (37) and (38)."""
    W, V2 = gauge(q)
    last = q[1] + q[2]
    place = theta(q[None])[:, 0]
    slope = np.array([[0, -np.sin(q[1]) - np.sin(last), -np.sin(last)], [0, 1, 1]])
    wave, turn = 0.6 * np.pi * t, np.pi * t
    rate = np.pi * np.array([0.18 * np.cos(wave), np.pi / 6 * np.cos(turn)])
    return np.linalg.solve(slope @ np.linalg.solve(W.T, V2), rate - K_P * (place - path(t)))


def test_the_law_in_joint_space_is_the_papers_in_a_gauge_of_its_own(runs):
    """(39) with `Γ_r = V2ᵀ (Γ V2 + V̇2)`, `Γ = (W⁻¹ C - Ẇᵀ) W⁻ᵀ`, and rates by differences."""
    system, run, step = ARM["prr_arm"].system(), runs["free"], 1e-5
    for k in (20, 200, 700, 1200):
        t, q, v = run["t"][k], run["q"][k], run["v"][k]
        W, V2 = gauge(q)
        ahead, behind = gauge(q + step * v), gauge(q - step * v)
        W_dot, V2_dot = ((x - y) / (2 * step) for x, y in zip(ahead, behind, strict=True))
        s = reduced_command(t, q)
        later, earlier = (reduced_command(t + d, q + d * v) for d in (step, -step))
        C = np.array(system.coriolis_matrix(q, v))  # with the C v of `closed_forms`, see above
        velocity = np.linalg.solve(W.T, V2 @ s)
        Gamma_s = V2.T @ (np.linalg.solve(W, C @ velocity) - W_dot.T @ velocity + V2_dot @ s)
        u_r = (later - earlier) / (2 * step) + Gamma_s - K_D * (V2.T @ W.T @ v - s)
        f = W @ V2 @ u_r + np.array(system.gravity_force(q)).ravel()
        np.testing.assert_allclose(run["f"][:, k], f, atol=1e-5)  # of the differences


def test_gravity_has_no_say_in_the_force_on_the_surface(runs):
    weightless = ARM["prr_arm"].system(gravity=0.0)
    found = ARM["run"](weightless, side=-1, force_control=False)
    np.testing.assert_allclose(found["lam"], runs["free"]["lam"], atol=INTEGRATION)


def test_the_papers_path_is_out_of_reach_between_7_36_and_7_64_seconds():
    t = np.linspace(0, 10, 100001)
    place, lean = path(t)
    beyond = t[np.abs(place - np.sin(lean)) > 1]  # |cos q2|
    assert beyond.min() == pytest.approx(7.360, abs=5e-4)
    assert beyond.max() == pytest.approx(7.640, abs=5e-4)
    assert ARM["DURATION"] < 7.3
