"""S20's inverse dynamics as control laws: by QR without full rank, and of the linear system."""

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import PostureTask
from mbcasadi.control.laws import computed_torque, qr_inverse_dynamics
from mbcasadi.control.regulators import discretize, linearize, lti_inverse_dynamics
from mbcasadi.dynamics import Treatment

MODEL = models.path("planar_3rrr")  # nine rows of rank six
PLATFORM = PostureTask(joints=("x", "y", "phi"), kp=400.0)
system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(MODEL))


@pytest.fixture(scope="module")
def weak():
    """The same robot with one motor missing: two motors for three freedoms."""
    spec = mujoco.MjSpec.from_file(str(MODEL))
    spec.delete(spec.actuator("leg_c"))
    return mb.read_mjcf(spec.compile())


def states(system, count, seed=0):
    """Return q and v on the manifold, one column for each."""
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(count):
        q = system.tree.q0 + 0.05 * rng.standard_normal(system.nv)
        for _ in range(12):
            A = np.array(system.constraint_jacobian(q))
            q = q - np.linalg.pinv(A, 1e-9) @ np.array(system.constraint(q)).ravel()
        A = np.array(system.constraint_jacobian(q))
        v = rng.standard_normal(system.nv)
        columns.append((q, v - np.linalg.pinv(A, 1e-9) @ A @ v, A))
    return columns


def outputs_of(function, q, v, ref):
    return {k: np.array(x).ravel() for k, x in function(q=q, v=v, ref=ref, z=[]).items()}


def test_the_motion_and_the_load_are_those_of_forward_dynamics(system):
    law, same = qr_inverse_dynamics(system, PLATFORM), computed_torque(system, PLATFORM)
    fd = mb.forward_dynamics(
        system, "lagrange", derivatives=False, treatment=Treatment(rank_tol=1e-7)
    )
    for q, v, _ in states(system, 20):
        ref = np.concatenate([q[6:] + 0.02, v[6:] - 0.1, [0.3, -0.2, 1.0]])
        out, desired = outputs_of(law.function, q, v, ref), outputs_of(law.desired, q, v, ref)
        assert out["status"] == 0
        motion = fd(q=q, v=v, f=system.actuator_force(q, v, out["u"]))
        assert_allclose(np.array(motion["a"]).ravel(), desired["a"], atol=1e-8)
        assert_allclose(np.array(motion["f_c"]).ravel(), desired["f_c"], atol=1e-8)
        expected = [0.3, -0.2, 1.0] - 40.0 * 0.1 * np.ones(3) + 400.0 * 0.02  # kd is critical
        assert_allclose(desired["a"][6:], expected, rtol=1e-9)
        other = outputs_of(same.function, q, v, ref)
        assert_allclose(out["u"], other["u"], atol=1e-10)


def test_the_control_solves_the_quadratic_program_of_s20(weak):
    """min |u| with M a + h = B u + Aᵀ lam, nearest where there is none: KKT conditions."""
    law = qr_inverse_dynamics(weak, PLATFORM, metric=np.eye(weak.nv))
    for q, v, A in states(weak, 10):
        ref = np.concatenate([q[6:], v[6:], [1.0, 2.0, -3.0]])
        out, desired = outputs_of(law.function, q, v, ref), outputs_of(law.desired, q, v, ref)
        Z = np.linalg.svd(A)[2][6:].T
        B, M = np.array(weak.actuation(q)), np.array(weak.mass_matrix(q))
        needed = Z.T @ (M @ desired["a"] + np.array(weak.bias_force(q, v)).ravel())
        missing = needed - Z.T @ B @ out["u"]
        assert_allclose(B.T @ Z @ missing, 0, atol=1e-9)  # nearest
        assert_allclose(Z.T @ out["residual"], missing, atol=1e-9)
        assert np.linalg.norm(missing) > 1e-3
        assert out["status"] == 2  # two motors cannot make it, and the law says so


def test_the_linear_law_is_exact_at_its_operating_point_and_near_it_to_second_order():
    four_bar = mb.read_mjcf(models.path("four_bar"))
    equilibrium = mb.equilibrium(four_bar)
    linear = linearize(four_bar, equilibrium)
    assert np.abs(linear.dfdx[1]).min() > 0.1  # gravity and damping
    exact = qr_inverse_dynamics(four_bar, PostureTask(kp=100.0))
    law = lti_inverse_dynamics(linear, kp=100.0)
    errors = []
    for size in (0.0, 0.04, 0.02):
        q, v = linear.state(size * np.array([1.0, -2.0]))
        q = mb.assemble(four_bar, q)
        x, eta_dot = linear.coordinates(q, v), size * np.array([5.0])
        ours = outputs_of(law.function, q, v, np.concatenate([x, eta_dot]))
        a = outputs_of(law.desired, q, v, np.concatenate([x, eta_dot]))["a"]
        theirs = outputs_of(exact.function, q, v, np.concatenate([q, v, a]))
        assert ours["status"] == 0
        errors.append(np.abs(ours["u"] - theirs["u"]).max())
    assert errors[0] < 1e-12
    assert errors[1] > 1e-5
    assert_allclose(errors[1] / errors[2], 4.0, rtol=0.4)


def test_the_linear_law_reports_what_is_unattainable(weak):
    linear = linearize(weak, weak.tree.q0)
    law = lti_inverse_dynamics(linear)
    zero = np.zeros(6)
    reach = linear.dfdu[3:] @ [0.2, -0.1]
    good = outputs_of(law.function, linear.q, linear.v, np.concatenate([zero, reach]))
    assert good["status"] == 0
    assert_allclose(good["u"], [0.2, -0.1], rtol=1e-9)
    assert_allclose(good["residual"], 0, atol=1e-10)
    out_of_reach = np.linalg.svd(linear.dfdu[3:])[0][:, 2]
    bad = outputs_of(law.function, linear.q, linear.v, np.concatenate([zero, out_of_reach]))
    assert bad["status"] == 2
    assert_allclose(bad["residual"], np.concatenate([np.zeros(3), out_of_reach]))
    assert_allclose(bad["u"], 0, atol=1e-9)  # nearest
    with pytest.raises(err.ProblemError, match="expected the continuous one"):
        lti_inverse_dynamics(discretize(linear, 1e-3))
