"""The adaptive law: its Lyapunov function, a heavier load in MuJoCo, bounds, and its C."""

import mujoco
import numpy as np
import pytest
from manifold_states import manifold_states
from numpy.testing import assert_allclose, assert_array_equal
from support.refusals import refused

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import Adaptation, LawOptions, adaptive_tracking, dependent_tracking
from mbcasadi.dynamics.regressor import linear_parameters, parameter_sizes
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.plant.named_parameters import scale_parameter

MODEL = models.path("five_bar")
LOAD = "body:left_distal"
MOTORS, OTHERS = [0, 2], [1, 3]
KP, KD, GAIN, HEAVIER = 10.0, 2.0, 2.0, 1.5
PERIOD, DURATION = 1e-3, 2.5  # s
STEP = 1e-5  # s, of differences along a motion
RATES, SWING = 2 * np.pi * np.array([0.7, 1.0]), np.array([0.25, 0.2])  # rad/s, rad
system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(MODEL))


@pytest.fixture(scope="module")
def law(system):
    return adaptive_tracking(system, [f"{LOAD}:*"], kp=KP, kd=KD, adaptation=Adaptation(GAIN))


def loaded() -> mujoco.MjModel:
    """Return the robot with half as much mass again on one body."""
    model = mujoco.MjModel.from_xml_path(str(MODEL))
    for what in ("mass", "inertia*"):
        scale_parameter(model, f"{LOAD}:{what}", HEAVIER)
    return model


@pytest.fixture(scope="module")
def path(system) -> np.ndarray:
    """Return (ticks, 12), q, v, a of a swing of both motors from rest, on the manifold."""
    states, q = [], np.array(system.tree.q0)
    for t in np.arange(0.0, DURATION, PERIOD):
        wave, v, a = RATES * t, np.zeros(4), np.zeros(4)
        q[MOTORS] = system.tree.q0[MOTORS] + SWING * (1 - np.cos(wave))
        v[MOTORS], a[MOTORS] = SWING * RATES * np.sin(wave), SWING * RATES**2 * np.cos(wave)
        for _ in range(2):  # from the pose of a tick before
            inverse = np.linalg.pinv(system.loop_jacobian(q).full()[:, OTHERS])
            q[OTHERS] -= inverse @ system.constraint(q).full().ravel()
        A = system.loop_jacobian(q).full()
        v[OTHERS] = -inverse @ A @ v
        a[OTHERS] = -inverse @ (A @ a + system.loop_bias(q, v).full().ravel())
        states.append([*q, *v, *a])
    return np.array(states)


def run_in_mujoco(law, path, model):
    """Return t, error, u and the statuses of a law at its period; MuJoCo is the plant."""
    data, z, rows = mujoco.MjData(model), law.controller.z0, []
    for k, ref in enumerate(path):
        u, z, status, *_ = law.function(data.qpos, data.qvel, ref, z)
        data.ctrl = u.full().ravel()
        rows.append([k * PERIOD, *(ref[:4] - data.qpos), *data.ctrl, float(status)])
        for _ in range(round(PERIOD / model.opt.timestep)):
            mujoco.mj_step(model, data)
    t, error, u, status = np.split(np.array(rows), [1, 5, 7], axis=1)
    return t.ravel(), error, u, status


def test_the_lyapunov_function_falls_by_damping_alone(law, system) -> None:
    """`V = ½ εᵀ M ε + ½ |D⁻¹ (θ̂ - θ)|² / γ`, `dV/dt = -εᵀ K_d ε`, in our own motion.

    The law has the model's load, the mechanism one that is heavier.
    """
    names = [f"{LOAD}:{what}" for what in ("mass", "inertia")]
    heavy = mb.read_mjcf(MODEL, parameters=names)
    heavy = heavy.at(
        {n: HEAVIER * heavy.parameters.values[heavy.parameters.slices[n]] for n in names}
    )
    patterns = [f"{LOAD}:*"]
    theta = linear_parameters(system, patterns)
    truth, sizes = linear_parameters(heavy, patterns).values, parameter_sizes(system, theta)
    fd, rng = mb.forward_dynamics(heavy), np.random.default_rng(0)
    wide = np.tile([-1e4, 1e4], (2, 1))
    gains = {"kp": KP, "kd": KD, "adaptation": Adaptation(GAIN), "metric": np.eye(4)}
    free = adaptive_tracking(system, patterns, options=LawOptions(ctrl_limits=wide), **gains)
    q_all, v_all = manifold_states(system, 4, 3)
    for q, v in zip(q_all.T, v_all.T, strict=True):
        target = q + 0.1 * rng.standard_normal(4)
        rate, second = rng.standard_normal((2, 4))
        z = free.controller.z0.copy()
        z[: len(theta)] *= 1 + 0.3 * rng.uniform(-1, 1, len(theta))
        u, z_next, status, *_ = free.function(q, v, [*target, *rate, *second], z)
        assert status == 0
        a = fd(q, v, system.actuation(q) @ u)[0].full().ravel()
        slope = (z_next.full().ravel() - z)[: len(theta)] / free.controller.period

        def error_at(t, q=q, v=v, a=a, moving=(target, rate, second)):
            """ε at a time near the state, from its definition."""
            there = system.integrate(q, t * v + t * t / 2 * a).full().ravel()
            A = system.constraint_jacobian(there).full()
            P = np.eye(4) - np.linalg.pinv(A, 1e-8) @ A
            wanted = moving[0] + t * moving[1] + t * t / 2 * moving[2]
            s = P @ (moving[1] + t * moving[2] + KP * (wanted - there))
            return there, P @ (v + t * a - s)

        def energy(t, z=z, slope=slope, error_at=error_at):
            there, error = error_at(t)
            off = (z[: len(theta)] + t * slope - truth) / sizes
            return error @ heavy.mass_matrix(there).full() @ error / 2 + off @ off / (2 * GAIN)

        power = (energy(STEP) - energy(-STEP)) / (2 * STEP)
        loss = -KD * error_at(0.0)[1] @ error_at(0.0)[1]
        assert loss < -1e-2
        assert power == pytest.approx(loss, rel=1e-4)


@pytest.mark.long
def test_in_mujoco_a_heavier_load_is_learned(law, system, path) -> None:
    model, wrong = loaded(), dependent_tracking(system, kp=KP, kd=KD)
    fixed, learned = (run_in_mujoco(x, path, model) for x in (wrong, law))
    t = learned[0]
    rms = [np.sqrt(np.mean(error[t > 1.5] ** 2)) for _, error, *_ in (fixed, learned)]
    assert rms[0] > 8e-3  # rad
    assert rms[1] < 0.3 * rms[0]
    assert rms[1] < 0.5 * np.sqrt(np.mean(learned[1][t < 0.8] ** 2))
    assert np.abs(learned[2]).max() < 15.0
    assert np.all(learned[3] == 0)


def test_estimates_without_excitation_stay_inside_their_bounds(system) -> None:
    """A velocity error that does not vanish, as of noise, drives them to the bounds at most."""
    bounds = {f"{LOAD}:mass": (0.3, 0.7)}
    drifting = adaptive_tracking(
        system, [f"{LOAD}:*"], kp=KP, kd=KD, adaptation=Adaptation(500.0, bounds=bounds)
    )
    theta, z = linear_parameters(system, [f"{LOAD}:*"]), drifting.controller.z0
    count, q0 = len(theta), np.array(system.tree.q0)
    ref = drifting.reference_at(q0 + np.array([0.02, 0.0, 0.0, 0.0]))
    for _ in range(300):
        _, z, status, *_ = drifting.function(q0, np.zeros(4), ref, z)
        assert status == 0
    z = z.full().ravel()[:count]
    assert np.abs(z - theta.values).max() > 0.1
    assert 0.3 - 1e-12 <= z[0] <= 0.7 + 1e-12
    principal = [theta.names.index(f"{LOAD}:origin_inertia.{axis}") for axis in ("xx", "yy", "zz")]
    assert z[principal].min() >= 0.0
    quiet = adaptive_tracking(
        system, [f"{LOAD}:*"], kp=KP, kd=KD,
        adaptation=Adaptation(500.0, dead_zone=10.0, leakage=2.0),
    )  # fmt: skip
    start = quiet.controller.z0.copy()
    start[0] += 0.1
    after = quiet.function(q0, np.zeros(4), ref, start)[1].full().ravel()
    assert after[0] - theta.values[0] == pytest.approx(0.1 * (1 - 2.0 * 1e-3))
    assert_allclose(after[1:count], theta.values[1:], atol=1e-15)


def test_saturated_motors_and_bad_input_leave_the_estimates(law, system) -> None:
    q0, count = np.array(system.tree.q0), 10
    far = law.reference_at(q0, {"a": [1e4, 0, 0, 0]})
    _, z, status, *_ = law.function(q0, np.zeros(4), far, law.controller.z0)
    assert status == 1
    assert_array_equal(z.full().ravel()[:count], law.controller.z0[:count])
    _, z, status, *_ = law.function(np.nan * q0, 0 * q0, far, law.controller.z0)
    assert status == 3
    assert_array_equal(z.full().ravel()[:count], law.controller.z0[:count])


def test_what_does_not_fit_is_refused(system) -> None:
    def make(given=system, names=(f"{LOAD}:*",), **options):
        return adaptive_tracking(given, list(names), kd=KD, adaptation=Adaptation(**options))

    refused(UnknownNameError, "left_distal", lambda: make(names=["body:left_dital:*"]))
    with pytest.raises(UnknownNameError, match="origin_inertia"):
        make(bounds={"body:left_proximal:mass": (0.1, 2.0)})
    refused(ProblemError, r"the model has 0\.5", lambda: make(bounds={f"{LOAD}:mass": (0.6, 2.0)}))
    refused(ProblemError, "gain", lambda: make(gain=-1.0))
    refused(ProblemError, "leakage", lambda: make(leakage=-1.0))
    both = mb.read_mjcf(MODEL, parameters=[f"{LOAD}:com", "gravity"])
    refused(ProblemError, "leave one of them out", lambda: make(both))
