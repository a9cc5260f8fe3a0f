"""A controller's exported tick over many states is its tick state by state."""

import casadi as ca
import numpy as np
import pytest
from codegen_problems import least_distance_controller, reference, saturated_controller

import mbcasadi as mb
from mbcasadi.errors import ProblemError


def test_a_quadratic_program_is_solved_in_each_state():
    """The judge is non-negative least squares, which shares no code with the solver."""
    batch = mb.batch(least_distance_controller(3, 5), threads=2)
    rng = np.random.default_rng(4)
    A, lower = rng.normal(size=(200, 5, 3)), rng.normal(size=(200, 5))
    upper = lower + rng.uniform(0.1, 2.0, size=lower.shape)
    given = batch(A=A, lower=lower, upper=upper)
    solved = 0
    for k in range(200):
        x = reference(A[k], lower[k], upper[k])
        assert given["status"][k, 0] == (2 if x is None else 0)
        if x is not None:
            solved += 1
            assert np.allclose(given["u"][k], x, atol=1e-7)
    assert 10 < solved < 200


def test_a_tick_is_that_of_the_exported_c(tmp_path):
    controller = least_distance_controller(3, 5, name="each")
    law = mb.export_c(controller, tmp_path / "c").load()
    batch = mb.batch(controller, threads=1)
    rng = np.random.default_rng(5)
    A, lower = rng.normal(size=(20, 5, 3)), rng.normal(size=(20, 5))
    given = batch(A, lower, lower + 1, np.zeros(5))
    for k in range(20):
        expected = law(A=A[k], lower=lower[k], upper=lower[k] + 1, z=np.zeros(5))
        for name, value in expected.items():
            assert np.array_equal(given[name][k], np.array(value).ravel()), name


def test_the_state_of_a_controller_is_fed_back_over_steps_and_starts_at_z0():
    controller = saturated_controller("counts")
    batch = mb.batch(controller, feedback={"z_next": "z"})
    rng = np.random.default_rng(6)
    q, v = rng.normal(size=(2, 9, 2))
    given = batch(q=q, v=v, steps=7)
    assert np.allclose(given["u"], np.clip(-20 * q - 3 * v, -5, 5), atol=1e-13)
    assert np.all(given["z_next"] == controller.z0[0] + 7)


def two_masses():
    """q'' = u by one step of 0.002 s, forces held: (q, v, u) → (q_next, v_next)."""
    q, v, u = ca.MX.sym("q", 2), ca.MX.sym("v", 2), ca.MX.sym("u", 2)
    h = 0.002
    outputs = [q + h * v + h**2 / 2 * u, v + h * u]
    return ca.Function("masses", [u, q, v], outputs, ["u", "q", "v"], ["q_next", "v_next"])


CLOSED = {"q_next": "q", "v_next": "v", "z_next": "z"}


def test_many_closed_loops_run_in_one_call():
    batch = mb.batch(saturated_controller("closed"), plant=two_masses(), feedback=CLOSED)
    rng = np.random.default_rng(8)
    q, v = rng.normal(size=(2, 21, 2))
    given = batch(q=q, v=v, steps=300)
    for _ in range(300):
        u = np.clip(-20 * q - 3 * v, -5, 5)
        q, v = q + 0.002 * v + 0.002**2 / 2 * u, v + 0.002 * u
    assert np.allclose(given["q_next"], q, rtol=0, atol=1e-12)
    assert np.allclose(given["v_next"], v, rtol=0, atol=1e-12)
    assert np.all(given["z_next"] == 3 + 300)


def test_a_plant_that_does_not_fit_is_refused():
    x = ca.SX.sym("x", 3)
    for names, message in ((("q", "v_next"), "q is 3x1"), (("w", "u"), "u is an output")):
        plant = ca.Function("plant", [x], [x], names[:1], names[1:])
        with pytest.raises(ProblemError, match=message):
            mb.batch(saturated_controller(), plant=plant)
    with pytest.raises(ProblemError, match="plant is for a controller"):
        mb.batch(two_masses(), plant=two_masses())


def test_a_state_that_is_not_finite_gets_its_safe_output_and_disturbs_no_other():
    batch = mb.batch(least_distance_controller(3, 5, name="halted"), threads=1)
    rng = np.random.default_rng(7)
    A, lower = rng.normal(size=(10, 5, 3)), rng.normal(size=(10, 5))
    clean = batch(A=A, lower=lower, upper=lower + 1)
    A[4] = np.nan
    given = batch(A=A, lower=lower, upper=lower + 1)
    others = np.arange(10) != 4
    assert np.array_equal(given["u"][others], clean["u"][others])
    assert given["status"][4, 0] != 0


def test_a_controller_in_float_is_refused():
    with pytest.raises(ProblemError, match="'double' only"):
        mb.batch(saturated_controller(), real="float")
