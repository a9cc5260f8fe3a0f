"""Identification on samples with known parameters, and the laws of its pieces."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.dynamics.regressor import linear_parameters, regressor
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.identification import (
    Samples,
    base_parameters,
    closed_samples,
    filtered_samples,
    identify,
    predicted_controls,
)
from mbcasadi.identification.base_parameters import random_samples
from mbcasadi.identification.equations import stacked_equations
from mbcasadi.identification.free_motion import FreeMotion
from mbcasadi.identification.pseudo_inertia import (
    body_parameters,
    free_numbers,
    parameters_of,
    pseudo_inertia,
    relative_change,
    spread_out,
)
from mbcasadi.identification.samples import SETTLING

ROUNDING = 1e-9
TORQUE = 0.02  # N m, standard deviation of noise
CAD = {"left_distal": 1.3, "right_proximal": 0.7}


def robot(scale: dict[str, float] | None = None) -> mb.System:
    """Return the five-bar, masses and inertias of some bodies scaled."""
    names = [f"body:{body}:{what}" for body in CAD for what in ("mass", "inertia")]
    system = mb.read_mjcf(models.path("five_bar"), parameters=names)
    values, places = system.parameters.values, system.parameters.slices
    factors = scale or {}
    return system.at(
        {n: factors.get(n.split(":")[1], 1.0) * values[places[n]] for n in system.parameters.slices}
    )


def with_forces(system: mb.System, samples: Samples, noise: float = 0.0) -> Samples:
    """Return samples with what the motors must do, as the system computes it."""
    rng, needed = np.random.default_rng(5), mb.dynamics.constrained_inverse_dynamics(system)
    f = []
    for q, v, a in zip(samples.q, samples.v, samples.a, strict=True):
        u = needed(q, v, a)[0].full().ravel()
        f.append(system.actuation(q).full() @ (u + noise * rng.standard_normal(u.size)))
    return Samples(samples.q, samples.v, samples.a, np.array(f))


@pytest.fixture(scope="module")
def true_system() -> mb.System:
    return robot()


@pytest.fixture(scope="module")
def wrong_system() -> mb.System:
    return robot(CAD)


@pytest.fixture(scope="module")
def samples(true_system: mb.System) -> Samples:
    return with_forces(true_system, random_samples(true_system, seed=3), TORQUE)


def test_base_parameters_carry_all_that_forces_depend_on(true_system: mb.System) -> None:
    base = base_parameters(true_system)
    states, motion = random_samples(true_system, seed=9), FreeMotion(true_system)
    Y_of, theta = regressor(true_system), linear_parameters(true_system)
    stacked = []
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        Y = motion.basis(q, v).T @ Y_of(q, v, a)[0].full()
        stacked.append(Y)
        difference = Y @ theta.values - Y[:, base.independent] @ base.matrix @ theta.values
        assert np.abs(difference).max() < ROUNDING * np.abs(Y @ theta.values).max()
    assert len(base) == np.linalg.matrix_rank(np.vstack(stacked), 1e-7) == 17
    assert "body:left_proximal:first_moment.y" in base.without_effect
    assert "joint:left_distal:damping" in base.names


def test_random_samples_move_as_fast_as_the_mechanism() -> None:
    system = mb.read_mjcf(models.path("scara"))
    rate, samples = system.scales.rate, random_samples(system)
    assert rate > 5  # else the powers of it are alike
    for motion, size in ((samples.v, rate), (samples.a, rate**2)):
        assert size / 3 < np.sqrt(np.mean(motion**2)) < 3 * size


def test_exact_samples_give_the_true_combinations(true_system, wrong_system) -> None:
    exact = with_forces(true_system, random_samples(true_system, seed=3))
    found = identify(wrong_system, exact)
    truth = found.base.matrix @ linear_parameters(true_system).values
    wrong = found.base.matrix @ found.parameters.values
    assert np.abs(wrong - truth).max() > 0.05
    np.testing.assert_allclose(found.beta, truth, atol=1e-8)
    np.testing.assert_allclose(found.base.matrix @ found.theta, truth, atol=1e-4)
    assert not found.undetermined


def test_what_is_not_identified_is_subtracted_from_the_measured_forces(true_system) -> None:
    exact = with_forces(true_system, random_samples(true_system, seed=3))
    theta = linear_parameters(true_system, ["body:left_distal:*"])
    equations = stacked_equations(true_system, theta, exact)
    subtracted = np.abs(equations.w - equations.force).max()
    assert subtracted > 0.01 * np.abs(equations.force).max()
    np.testing.assert_allclose(equations.W @ theta.values, equations.w, atol=ROUNDING * subtracted)


def test_noisy_samples_give_them_within_their_deviations(samples, true_system, wrong_system):
    found = identify(wrong_system, samples)
    truth = found.base.matrix @ linear_parameters(true_system).values
    sigmas = (found.beta - truth) / found.beta_std
    assert 0.4 < np.sqrt(np.mean(sigmas**2)) < 1.6
    assert np.abs(sigmas).max() < 4
    for patterns in ("body:*:mass", "joint:*"):
        chosen = linear_parameters(wrong_system, [patterns])
        assert all(found.theta[found.parameters.slices[x.name]] >= 0 for x in chosen.items)
    for name, place in found.parameters.slices.items():
        if name.endswith(":mass"):
            own = slice(place.start, place.start + 10)
            assert np.linalg.eigvalsh(pseudo_inertia(found.theta[own])).min() > 0
    u = np.array([f[[0, 2]] for f in samples.f])
    off = {}
    for name, theta in (("CAD", found.parameters.values), ("found", found.theta)):
        needed = predicted_controls(wrong_system, samples, found.parameters, theta)
        off[name] = np.linalg.norm(needed - u) / np.linalg.norm(u)
    assert off["CAD"] > 0.1
    assert off["found"] < 0.1 * off["CAD"]


def test_the_values_go_back_into_the_model(samples, wrong_system) -> None:
    found = identify(wrong_system, samples)
    names = [name for name in found.physical if ":armature" not in name]
    again = mb.read_mjcf(models.path("five_bar"), parameters=names)
    again = again.at({name: found.physical[name] for name in names})
    values = dict(zip(found.parameters.names, found.theta, strict=True))
    theta = linear_parameters(again, ["body:*"])
    for name, value in zip(theta.names, theta.values, strict=True):
        assert value == pytest.approx(values[name], abs=1e-9), name


def test_weights_follow_the_noise_that_is_given(true_system, wrong_system) -> None:
    """Samples of a motor with ten times the noise count less: deviations shrink."""
    rng, motion = np.random.default_rng(0), random_samples(true_system, seed=3)
    exact = with_forces(true_system, motion)
    noise = np.array([0.3, 1e-3, 0.01, 1e-3])
    noisy = Samples(exact.q, exact.v, exact.a, exact.f + noise * rng.standard_normal(exact.f.shape))
    even, weighted = (identify(wrong_system, noisy, noise=n) for n in (None, noise))
    assert np.median(weighted.beta_std / even.beta_std) < 0.5
    assert weighted.noise == pytest.approx(1.0, abs=0.15)


def test_a_motion_that_excites_too_little_names_what_it_leaves_open(true_system) -> None:
    still = random_samples(true_system, seed=3)
    still = with_forces(true_system, Samples(still.q, 0 * still.v, 0 * still.a, still.f))
    with pytest.raises(ProblemError, match="joint:left_distal:damping"):
        identify(true_system, closed_samples(true_system, still), spread=None)
    found = identify(true_system, closed_samples(true_system, still))
    assert "joint:left_distal:damping" in found.undetermined
    assert np.isnan(found.beta[found.base.names.index("joint:left_distal:damping")])
    place = found.parameters.slices["joint:left_distal:damping"]
    assert found.theta[place] == pytest.approx(0.01, rel=1e-3)  # the model's


def test_what_cannot_be_identified_is_refused(samples, true_system) -> None:
    with pytest.raises(UnknownNameError, match="left_distal"):
        identify(true_system, samples, ["body:lefft_distal:*"])
    with pytest.raises(ProblemError, match=r"choose 'body:left_distal:\*'"):
        identify(true_system, samples, ["body:left_distal:mass"])
    with pytest.raises(ProblemError, match="more samples"):
        identify(true_system, Samples(*(getattr(samples, x)[:3] for x in "qvaf")))
    with pytest.raises(ProblemError, match="above zero"):
        identify(true_system, samples, noise=np.zeros(4))
    with pytest.raises(ProblemError, match="no motion"):
        base_parameters(mb.read_mjcf(models.path("slider_crank")), ["body:crank:first_moment"][:0])
    with pytest.raises(ShapeError, match="one row for each sample"):
        Samples(np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((2, 4)))
    with pytest.raises(ShapeError, match="five_bar"):
        identify(true_system, Samples(*np.zeros((4, 2, 3))))


def test_filtered_samples_are_on_the_manifold_and_near_the_true_motion(true_system) -> None:
    """MuJoCo's own accelerations, from noisy positions of a robot that its motors swing."""
    model = mujoco.MjModel.from_xml_path(str(models.path("five_bar")))
    data, t, rows = mujoco.MjData(model), [], []
    for k in range(2400):
        swing = 0.1 * (1 - np.cos(2 * np.pi * data.time * np.array([1.0, 1.3])))
        data.ctrl = 30 * (swing - data.qpos[[0, 2]]) - data.qvel[[0, 2]]
        if k % 2 == 0:
            mujoco.mj_forward(model, data)
            t.append(data.time)
            rows.append(np.concatenate([data.qpos, data.qvel, data.qacc, data.ctrl]))
        mujoco.mj_step(model, data)
    q, v, a, u = np.split(np.array(rows), [4, 8, 12], axis=1)
    noisy = q + 1e-5 * np.random.default_rng(0).standard_normal(q.shape)
    found = filtered_samples(true_system, t, noisy, u, cutoff=15.0, every=10, held=False)
    first = round(SETTLING / (15.0 * (t[1] - t[0])))
    kept = slice(first, first + 10 * len(found), 10)
    calm = np.array(t[kept]) > 0.5  # s, after the jerk of the start
    for ours, theirs, share in ((found.q, q, 1e-4), (found.v, v, 1e-3), (found.a, a, 1e-2)):
        difference = np.abs(ours - theirs[kept])[calm]
        assert difference.max() < share * np.abs(theirs).max()
    torque = found.f[calm][:, [0, 2]]
    np.testing.assert_allclose(torque, u[kept][calm], atol=1e-2 * np.abs(u).max())
    by_held = filtered_samples(true_system, t, noisy, u, cutoff=15.0, every=10).f
    rise = np.gradient(u, axis=0)[kept][calm]  # in a tick: commands that are held lag by half of it
    lag = (found.f - by_held)[calm][:, [0, 2]]
    np.testing.assert_allclose(lag, rise / 2, atol=0.1 * np.abs(rise).max())
    for x, y, z in zip(found.q[::20], found.v[::20], found.a[::20], strict=True):
        A, c = true_system.constraint_jacobian(x).full(), true_system.constraint_bias(x, y)
        assert np.abs(true_system.constraint(x).full()).max() < 1e-11
        assert np.abs(A @ y).max() < 1e-11
        assert np.abs(A @ z + c.full().ravel()).max() < 1e-9
    for bad, message in (({"cutoff": 600.0}, "half the"), ({"cutoff": 0.5}, "record longer")):
        with pytest.raises(ProblemError, match=message):
            filtered_samples(true_system, 100.0 + np.array(t), noisy, u, **bad)
    uneven = np.sin(np.arange(len(t))) * (t[1] - t[0])
    with pytest.raises(ProblemError, match="evenly"):
        filtered_samples(true_system, t + 1e-4 * uneven, noisy, u, cutoff=15.0)
    filtered_samples(true_system, t + 1e-8 * uneven, noisy, u, cutoff=15.0, every=100)


def test_every_free_number_gives_a_real_body_and_back() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        phi = rng.standard_normal(10)
        theta, slope = body_parameters(phi)
        J = pseudo_inertia(theta)
        assert np.linalg.eigvalsh(J).min() > 0
        np.testing.assert_allclose(parameters_of(J), theta, atol=1e-12)
        np.testing.assert_allclose(free_numbers(J), phi, atol=1e-9)
        step = 1e-6
        for k, unit in enumerate(step * np.eye(10)):
            ends = (body_parameters(phi + s * unit)[0] for s in (1, -1))
            expected = (next(ends) - next(ends)) / (2 * step)
            np.testing.assert_allclose(slope[:, k], expected, atol=1e-6 * np.abs(slope).max())
        other = pseudo_inertia(body_parameters(rng.standard_normal(10))[0])
        change = np.linalg.solve(J, other - J)
        distance = relative_change(J) @ parameters_of(other - J)
        assert distance @ distance == pytest.approx(np.trace(change @ change) / 2)


def test_a_point_mass_is_spread_out() -> None:
    point = pseudo_inertia(np.array([2.0, 0, 0, 1.0, 0.5, 0.5, 0, 0, 0, 0]))
    assert np.linalg.eigvalsh(point).min() < 1e-12
    assert np.linalg.eigvalsh(spread_out(point)).min() > 0
    plate = np.diag([1.0, 1.0, 0.01, 1.0])  # a tenth as thick as wide
    np.testing.assert_array_equal(spread_out(plate), plate)
