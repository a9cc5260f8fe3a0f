"""Encoder noise on overconstrained loops: the control changes in proportion to it, no more.

Off the manifold the redundant rows of these loops are independent: without closing the state,
noise of 1e-8 rad would leave no motion.
"""

import numpy as np
import pytest
from support.corpora import robot

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.control.laws import computed_torque, qr_inverse_dynamics
from mbcasadi.mpc import discrete_dynamics
from mbcasadi.simulation import assemble

NOISE = (1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3)  # rad
GROWTH = 100.0  # relative change of an output over the noise; the largest is Cassie's, 51
ROUNDING = 1e-9
LOOPS = (
    "bricard",
    "spatial_loop",
    "parallelogram",
    "four_bar",
)  # ranks 5, 3, 2 and 2 of 6, 6, 6, 3
FORMULATIONS = (
    "limbwise",
    "projection",
    "lagrange",
    "virtual_mass",
    "udwadia_kalaba",
    "quasi_velocity",
)


def closed_state(system, spread, seed=1):
    """Return a state on the manifold beside the initial pose, and directions of noise."""
    rng = np.random.default_rng(seed)
    q = np.array(system.integrate(system.tree.q0, spread * rng.standard_normal(system.nv)))
    q = assemble(system, q.ravel())
    A, v = np.array(system.constraint_jacobian(q)), rng.standard_normal(system.nv)
    v = v - np.linalg.pinv(A, rcond=1e-9) @ (A @ v)
    return q, v, rng.standard_normal((2, system.nv)), rng


def assert_proportional(evaluate, system, state, directions):
    """Assert that outputs at noisy states differ from those at the exact one like the noise."""
    (q, v), (dq, dv) = state, directions
    exact, status = evaluate(q, v)
    assert np.abs(exact).max() > 0
    for noise in NOISE:
        noisy = np.array(system.integrate(q, noise * dq)).ravel()
        value, status_of_noisy = evaluate(noisy, v + noise * dv)
        change = np.abs(value - exact).max() / np.abs(exact).max()
        assert change <= GROWTH * noise + ROUNDING, f"noise {noise}: relative change {change:.1e}"
        assert status_of_noisy == status


def outputs_of(controller, ref):
    function = controller.function
    rest = {"ref": ref} | {
        name: np.ones(function.size1_in(name)) if name == "mask" else controller_state(controller)
        for name in ("mask", "z")
        if name in function.name_in()
    }

    def evaluate(q, v):
        out = function(q=q, v=v, **rest)
        return np.array(out["u"]).ravel(), int(out["status"])

    return evaluate


def controller_state(controller):
    return controller.z0 if hasattr(controller, "z0") else controller.controller.z0


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("kind", ["inverse dynamics", "computed torque", "QR"])
@pytest.mark.every(3)
def test_the_control_changes_in_proportion_to_the_noise(name, kind):
    system = mb.read_mjcf(models.path(name))
    q, v, directions, _ = closed_state(system, 0.3)
    if kind == "inverse dynamics":
        controller = InverseDynamicsQP(system, [PostureTask(kp=100.0)])
        ref = controller.reference_at(q) + 0.01
    else:
        make = computed_torque if kind == "computed torque" else qr_inverse_dynamics
        controller = make(system, PostureTask(kp=100.0))
        ref = controller.reference(posture_q=q + 0.01)
    assert_proportional(outputs_of(controller, ref), system, (q, v), directions)


@pytest.mark.parametrize("model", ["men__agility_cassie__cassie", "men__robotiq_2f85__2f85"])
def test_the_control_of_a_real_robot_with_loops_changes_in_proportion_to_the_noise(model):
    system = mb.read_mjcf(robot(model))
    q, v, directions, _ = closed_state(system, 0.05)
    wide = np.tile([-1e6, 1e6], (system.nu, 1))  # at a limit the control would not change at all
    controller = InverseDynamicsQP(
        system, [PostureTask(kp=100.0)], ctrl_limits=wide, force_limits=wide
    )
    ref = controller.reference_at(q) + 0.2
    assert_proportional(outputs_of(controller, ref), system, (q, v), directions)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.every(3)
def test_the_acceleration_changes_in_proportion_to_the_noise(name):
    system = mb.read_mjcf(models.path(name))
    q, v, directions, rng = closed_state(system, 0.3)
    f = rng.standard_normal(system.nv)
    for formulation in FORMULATIONS:
        dynamics = mb.forward_dynamics(system, formulation)

        def acceleration(q, v, dynamics=dynamics):
            return np.array(dynamics(q=q, v=v, f=f)["a"]).ravel(), 0

        assert_proportional(acceleration, system, (q, v), directions)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.every(3)
def test_a_step_of_mpc_from_a_noisy_state_changes_in_proportion_to_the_noise(name):
    system = mb.read_mjcf(models.path(name))
    q, v, directions, rng = closed_state(system, 0.3)
    step = discrete_dynamics(system, 5e-3)
    u = 0.1 * rng.standard_normal(system.nu)

    def velocity(q, v):
        return np.array(step(x=np.concatenate([q, v]), u=u)["x_next"]).ravel()[system.nq :], 0

    assert_proportional(velocity, system, (q, v), directions)
