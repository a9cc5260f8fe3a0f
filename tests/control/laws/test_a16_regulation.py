"""A16's regulator: what it asks for, how its energy falls, and where its friction holds it."""

import warnings

import numpy as np
import pytest
from manifold_states import manifold_states, outputs_of
from support.admissible_states import call

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import DryFriction, LawOptions, dependent_regulation
from mbcasadi.validation import compile_controller, validate

ROUNDING = 1e-9  # of forces of some 10 N m, pseudo-inverses of condition 100
OPEN, CARRY, BOTH = (0, 0, 0), (0, 1, 1), (1, 1, 1)
KP = np.array([60.0, 20.0, 1.5] * 2 + [100.0, 100.0, 10.0])
KD = np.array([8.0, 3.0, 0.15] * 2 + [40.0, 40.0, 3.0])
SIGMA = 0.4
COUNT = 40


@pytest.fixture(scope="module")
def arms():
    return mb.read_mjcf(models.path("two_arm_carry"), switchable=True)


@pytest.fixture(scope="module")
def law(arms):
    wide = np.tile([-1e4, 1e4], (arms.nu, 1))
    plain = {"metric": np.eye(arms.nv), "control_metric": np.eye(arms.nu)}  # as in the paper
    return dependent_regulation(
        arms,
        kp=KP,
        kd=KD,
        options=LawOptions(ctrl_limits=wide),
        friction=DryFriction(sigma=SIGMA),
        **plain,
    )


def random_inputs(arms, mask, seed=1):
    """Random states on the manifold of a mask, with random goals."""
    q, v = manifold_states(arms, COUNT, seed, rows=np.repeat(mask, 6))
    goal = np.array(arms.tree.q0)[:, None] + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    masks = np.tile(np.reshape(mask, (-1, 1)), COUNT).astype(float)
    return {"q": q, "v": v, "ref": goal, "mask": masks, "z": np.zeros((0, COUNT))}


def desired_force(arms, at):
    """The force of eq. 21, and its friction, by NumPy."""
    e, v = at["q"] - at["ref"], at["v"]
    eta = v / np.maximum(np.linalg.norm(v, axis=0), 1e-2)
    friction = SIGMA * np.linalg.norm(e, axis=0) * KP[:, None] * eta
    still = outputs_of(arms.bias_force, {"q": at["q"], "v": 0 * v})["h"]
    return still - KP[:, None] * e - friction - KD[:, None] * v, friction


def projectors(arms, at):
    A = call(arms.constraint_jacobian, {"q": at["q"]})["A"]
    A = np.repeat(at["mask"], 6, axis=0).T[:, :, None] * A
    P = np.eye(arms.nv) - np.linalg.pinv(A, 1e-8) @ A
    return np.where(np.abs(P) < ROUNDING, 0, P)  # nothing moves where all constraints hold


@pytest.mark.parametrize("mask", [OPEN, CARRY, BOTH, (1, 0, 0), (0, 1, 0)])
def test_the_control_is_the_least_one_with_the_desired_force_along_the_constraint(arms, law, mask):
    """(16)-(19) with the pseudo-inverse, whatever holds; the bar alone cannot be moved."""
    at = random_inputs(arms, mask)
    out, P = outputs_of(law.function, at), projectors(arms, at)
    force, _ = desired_force(arms, at)
    B = np.array(arms.actuation(np.zeros(arms.nq)))
    for k in range(COUNT):
        u = np.linalg.pinv(P[k] @ B, 1e-8) @ P[k] @ force[:, k]
        np.testing.assert_allclose(out["u"][:, k], u, atol=1e-6 * (1 + np.abs(u).max()))
        missing = P[k] @ (force[:, k] - B @ u)
        np.testing.assert_allclose(out["residual"][:, k], missing, atol=ROUNDING * 100)
    is_reachable = mask not in (OPEN,)  # open, the bar falls freely
    assert set(out["status"].ravel()) == ({0.0} if is_reachable else {2.0})


@pytest.mark.parametrize("mask", [CARRY, (1, 0, 0), (0, 1, 0)])
def test_the_energy_falls_by_damping_and_friction_alone(arms, law, mask):
    """`V̇ = vᵀM a + ½ vᵀṀ v + eᵀK_p v = -vᵀK_d v - σ‖e‖vᵀK_p η` under u, by forward dynamics."""
    at = random_inputs(arms, mask, seed=2)
    q, v = at["q"], at["v"]
    u = outputs_of(law.function, at)["u"]
    fd = mb.forward_dynamics(arms, "lagrange", derivatives=False)
    rows = np.repeat(at["mask"], 6, axis=0)
    f = np.array(arms.actuation(np.zeros(arms.nq))) @ u
    a = outputs_of(fd, {"q": q, "v": v, "f": f, "mask": rows})["a"]
    M = call(arms.mass_matrix, {"q": q})["M"]
    C = call(arms.coriolis_matrix, {"q": q, "v": v})["C"]
    rate = np.einsum("ik,kij,jk->k", v, M, a) + np.einsum("ik,kij,jk->k", v, C, v)
    rate += np.sum((q - at["ref"]) * KP[:, None] * v, axis=0)
    _, friction = desired_force(arms, at)
    expected = -np.sum(v * (KD[:, None] * v + friction), axis=0)
    assert np.abs(expected).max() > 1.0  # W
    np.testing.assert_allclose(rate, expected, atol=1e-6 * np.abs(expected).max())


def test_the_virtual_mass_changes_no_desired_acceleration_which_is_that_of_the_motion(arms, law):
    at = random_inputs(arms, CARRY, seed=3)
    default = outputs_of(law.desired, at)["a"]
    for mass in (1e-2, 10.0):
        other = dependent_regulation(
            arms,
            kp=KP,
            kd=KD,
            virtual_mass=mass,
            metric=np.eye(arms.nv),
            friction=DryFriction(sigma=SIGMA),
        )
        a = outputs_of(other.desired, at)["a"]
        np.testing.assert_allclose(a, default, atol=1e-6 * np.abs(default).max())
    f = np.array(arms.actuation(np.zeros(arms.nq))) @ outputs_of(law.function, at)["u"]
    rows = np.repeat(at["mask"], 6, axis=0)
    fd = mb.forward_dynamics(arms, "lagrange", derivatives=False)
    a = outputs_of(fd, {"q": at["q"], "v": at["v"], "f": f, "mask": rows})["a"]
    np.testing.assert_allclose(a, default, atol=1e-6 * np.abs(default).max())


def test_a_sigma_of_one_or_more_warns_and_is_in_the_notes(arms):
    with pytest.warns(UserWarning, match="sigma = 1.5: from 1 on the friction .* sticks"):
        law = dependent_regulation(arms, kp=1.0, kd=1.0, friction=DryFriction(sigma=1.5))
    assert "sticks" in law.controller.notes["sigma"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dependent_regulation(arms, kp=1.0, kd=1.0).controller.notes["sigma"] == "0.5"


@pytest.mark.parametrize("bad", [{"kp": -1.0}, {"kd": (1.0, 2.0)}])
def test_gains_that_make_no_law_are_refused(arms, bad):
    with pytest.raises(err.ProblemError, match=next(iter(bad))):
        dependent_regulation(arms, **({"kp": 1.0, "kd": 1.0} | bad))


def test_a_negative_share_of_friction_is_refused():
    with pytest.raises(err.ProblemError, match="sigma"):
        DryFriction(sigma=-0.1)


CIRCLE = models.path("particle_on_circle")
STIFF, SOFT = 16.0, 1e-6  # N/m of x and z; N m/rad of the massless rod, which is to stay out of it


def circle_law(sigma):
    system = mb.read_mjcf(CIRCLE)
    gains = {"kp": (STIFF, STIFF, SOFT), "kd": (6.0, 6.0, SOFT)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dependent_regulation(system, friction=DryFriction(sigma=sigma), **gains)


def on_circle(angle):
    return np.array([np.cos(angle), np.sin(angle), angle])


def holds(sigma, start, goal):
    """Whether friction can hold the spring, `‖P K_p e‖ <= σ ‖e‖ ‖P K_p η‖`."""
    e = on_circle(start) - on_circle(goal)
    eta = np.array([-np.sin(start), np.cos(start), 1.0]) / np.sqrt(2)
    K = np.diag([STIFF, STIFF, SOFT])
    return abs(eta @ K @ e) <= sigma * np.linalg.norm(e) * (eta @ K @ eta)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.5])
def test_the_law_converges_where_its_friction_is_weaker_than_its_spring_and_sticks_elsewhere(sigma):
    """Theorem 2 the right way round: the larger σ, the more poses hold the particle."""
    goal, verdicts = -0.5, []
    with compile_controller(circle_law(sigma)) as code:
        for far in (0.8, 2.6):  # rad
            run = validate(
                code, CIRCLE, 3.0, reference=on_circle(goal), q0=on_circle(goal + far)
            ).runs[0]
            remaining = abs(run.recording.q[-1, 2] - goal) / far
            sticks = holds(sigma, goal + far, goal)
            assert remaining > 0.9 if sticks else remaining < 0.3, (sigma, far, remaining)
            verdicts.append(sticks)
    assert verdicts == {0.0: [False, False], 0.5: [False, True], 1.5: [True, True]}[sigma]
