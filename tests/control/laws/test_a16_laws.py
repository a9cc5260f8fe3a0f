"""A16's regulator and tracking: energies that fall, friction that holds, masks that switch."""

import warnings
from functools import cache

import casadi as ca
import numpy as np
import pytest
from manifold_states import manifold_states, outputs_of
from numpy.testing import assert_allclose
from support.admissible_states import call
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import DryFriction, LawOptions, dependent_regulation, dependent_tracking
from mbcasadi.dynamics import virtual_mass_terms
from mbcasadi.validation import ScenarioOptions, compile_controller, validate

ROUNDING = 1e-9  # of forces of some 10 N m, pseudo-inverses of condition 100
OPEN, CARRY, BOTH = (0, 0, 0), (0, 1, 1), (1, 1, 1)
KP = np.array([60.0, 20.0, 1.5] * 2 + [100.0, 100.0, 10.0])
KD = np.array([8.0, 3.0, 0.15] * 2 + [40.0, 40.0, 3.0])
SIGMA, COUNT = 0.4, 40
CIRCLE, SWITCH = models.path("particle_on_circle"), models.path("topology_switch")
STIFF, SOFT = 16.0, 1e-6  # N/m of x and z; N m/rad of the massless rod, which is to stay out of it
STEP = 1e-5  # s, of central differences along a motion
DIFFERENCES = 1e-5  # of such differences, of powers of some 10 W
GAIN = 6.0  # 1/s, of tracking


@cache
def arms():
    return mb.read_mjcf(models.path("two_arm_carry"), switchable=True)


def regulation(**options):
    plain = {"metric": np.eye(arms().nv), "control_metric": np.eye(arms().nu)}  # as in the paper
    return dependent_regulation(
        arms(), kp=KP, kd=KD, friction=DryFriction(sigma=SIGMA), **plain | options
    )


@cache
def law():
    return regulation(options=LawOptions(ctrl_limits=wide(arms(), 1e4)))


def wide(system, limit=1e6):
    return np.tile([-limit, limit], (system.nu, 1))


def random_inputs(mask, seed=1):
    """Random states on the manifold of a mask, with random goals."""
    q, v = manifold_states(arms(), COUNT, seed, rows=np.repeat(mask, 6))
    goal = arms().tree.q0[:, None] + 0.3 * np.random.default_rng(seed).normal(size=q.shape)
    masks = np.tile(np.reshape(mask, (-1, 1)), COUNT).astype(float)
    return {"q": q, "v": v, "ref": goal, "mask": masks, "z": np.zeros((0, COUNT))}


def acceleration(at, u):
    """The motion under u by Lagrange's equations."""
    fd = mb.forward_dynamics(arms(), "lagrange", derivatives=False)
    f = np.array(arms().actuation(np.zeros(arms().nq))) @ u
    rows = np.repeat(at["mask"], 6, axis=0)
    return outputs_of(fd, {"q": at["q"], "v": at["v"], "f": f, "mask": rows})["a"]


def desired_force(at):
    """The force of eq. 21, and its friction, by NumPy."""
    e, v = at["q"] - at["ref"], at["v"]
    eta = v / np.maximum(np.linalg.norm(v, axis=0), 1e-2)
    friction = SIGMA * np.linalg.norm(e, axis=0) * KP[:, None] * eta
    still = outputs_of(arms().bias_force, {"q": at["q"], "v": 0 * v})["h"]
    return still - KP[:, None] * e - friction - KD[:, None] * v, friction


@pytest.mark.parametrize("mask", [OPEN, CARRY, BOTH, (1, 0, 0), (0, 1, 0)])
def test_the_control_is_the_least_one_with_the_desired_force_along_the_constraint(mask):
    """(16)-(19) with the pseudo-inverse, whatever holds; the bar alone cannot be moved."""
    at = random_inputs(mask)
    out, (force, _) = outputs_of(law().function, at), desired_force(at)
    A = np.repeat(mask, 6)[:, None] * call(arms().constraint_jacobian, {"q": at["q"]})["A"]
    P = np.eye(arms().nv) - np.linalg.pinv(A, 1e-8) @ A
    P = np.where(np.abs(P) < ROUNDING, 0, P)  # nothing moves where all constraints hold
    B = np.array(arms().actuation(np.zeros(arms().nq)))
    for k in range(COUNT):
        u = np.linalg.pinv(P[k] @ B, 1e-8) @ P[k] @ force[:, k]
        assert_allclose(out["u"][:, k], u, atol=1e-6 * (1 + np.abs(u).max()))
        missing = P[k] @ (force[:, k] - B @ u)
        assert_allclose(out["residual"][:, k], missing, atol=ROUNDING * 100)
    assert set(out["status"].ravel()) == ({2.0} if mask == OPEN else {0.0})  # open, the bar falls


@pytest.mark.parametrize("mask", [CARRY, (1, 0, 0), (0, 1, 0)])
def test_the_energy_falls_by_damping_and_friction_alone(mask):
    """`V̇ = vᵀM a + ½ vᵀṀ v + eᵀK_p v = -vᵀK_d v - σ‖e‖vᵀK_p η` under u, by forward dynamics."""
    at = random_inputs(mask, seed=2)
    q, v = at["q"], at["v"]
    a = acceleration(at, outputs_of(law().function, at)["u"])
    M = call(arms().mass_matrix, {"q": q})["M"]
    C = call(arms().coriolis_matrix, {"q": q, "v": v})["C"]
    rate = np.einsum("ik,kij,jk->k", v, M, a) + np.einsum("ik,kij,jk->k", v, C, v)
    rate += np.sum((q - at["ref"]) * KP[:, None] * v, axis=0)
    expected = -np.sum(v * (KD[:, None] * v + desired_force(at)[1]), axis=0)
    assert np.abs(expected).max() > 1.0  # W
    assert_allclose(rate, expected, atol=1e-6 * np.abs(expected).max())


def test_the_virtual_mass_changes_no_desired_acceleration_which_is_that_of_the_motion():
    at = random_inputs(CARRY, seed=3)
    default = outputs_of(law().desired, at)["a"]
    others = [outputs_of(regulation(virtual_mass=m).desired, at)["a"] for m in (1e-2, 10.0)]
    for a in (*others, acceleration(at, outputs_of(law().function, at)["u"])):
        assert_allclose(a, default, atol=1e-6 * np.abs(default).max())


def test_a_sigma_of_one_or_more_warns_and_is_in_the_notes():
    with pytest.warns(UserWarning, match="sigma = 1.5: from 1 on the friction .* sticks"):
        sticky = dependent_regulation(arms(), kp=1.0, kd=1.0, friction=DryFriction(sigma=1.5))
    assert "sticks" in sticky.controller.notes["sigma"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dependent_regulation(arms(), kp=1.0, kd=1.0).controller.notes["sigma"] == "0.5"


def on_circle(angle):
    return np.array([np.cos(angle), np.sin(angle), angle])


def holds(sigma, start, goal):
    """Whether friction can hold the spring, `‖P K_p e‖ <= σ ‖e‖ ‖P K_p η‖`."""
    e = on_circle(start) - on_circle(goal)
    eta = np.array([-np.sin(start), np.cos(start), 1.0]) / np.sqrt(2)
    K = np.diag([STIFF, STIFF, SOFT])
    return abs(eta @ K @ e) <= sigma * np.linalg.norm(e) * (eta @ K @ eta)


@pytest.mark.parametrize("sigma", [0.5, 0.0, 1.5])
@pytest.mark.every(3)
def test_the_law_converges_where_its_friction_is_weaker_than_its_spring_and_sticks_elsewhere(sigma):
    """Theorem 2 the right way round: the larger σ, the more poses hold the particle."""
    goal, verdicts, gains = -0.5, [], {"kp": (STIFF, STIFF, SOFT), "kd": (6.0, 6.0, SOFT)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = dependent_regulation(mb.read_mjcf(CIRCLE), friction=DryFriction(sigma=sigma), **gains)
    with compile_controller(one) as code:
        for far in (0.8, 2.6):  # rad
            ends = {"reference": on_circle(goal), "q0": on_circle(goal + far)}
            run = validate(code, CIRCLE, 3.0, **ends).runs[0]
            remaining = abs(run.recording.q[-1, 2] - goal) / far
            verdicts.append(holds(sigma, goal + far, goal))
            assert remaining > 0.9 if verdicts[-1] else remaining < 0.3, (sigma, far, remaining)
    assert verdicts == {0.0: [False, False], 0.5: [False, True], 1.5: [True, True]}[sigma]


def test_two_motors_rule_the_latched_loop_and_cannot_rule_the_open_pendulums():
    """Open: 4 freedoms, status 2. Latched in mid-run: 2 freedoms, and the goal is reached."""
    pendulums = mb.read_mjcf(SWITCH, switchable=True)
    latch = dependent_regulation(pendulums, kp=20.0, kd=1.0, friction=DryFriction(sigma=0.3))
    latched, closed_pose = 0.1, np.array(pendulums.tree.q0)
    out = latch.function(q=closed_pose, v=np.zeros(4), ref=closed_pose + 50, mask=1, z=latch.z0)
    assert float(out["status"]) == 1.0
    assert_allclose(np.abs(out["u"].full()), 8.0)  # N m, the limit
    goal = mb.assemble(pendulums, closed_pose + np.array([0.15, 0, 0.1, 0]), mask=np.ones(3))
    run = validate(
        latch,
        SWITCH,
        3.0,
        reference=lambda t: closed_pose if t < latched else goal,
        scenario=ScenarioOptions(
            mask=lambda t: [t >= latched], switch=lambda t: {"latch": t >= latched}
        ),
        perturb={"mass": 0.1},
        disturbance=lambda t: [0, 0, 0, 0.4 * (1.0 <= t < 1.2)],
    ).runs[0]
    r = run.recording
    before, open_yet = r.t < latched, run.comparison.t < latched
    assert set(r.status[before]) == {2}
    assert set(r.status[~before]) <= {0, 1}
    distance = np.linalg.norm(r.q - goal, axis=1)
    assert distance[before].max() > 0.1  # rad
    assert distance[(r.t > 1) & (r.t < 1.3)].max() > 3 * distance[-1]  # the push
    assert distance[-1] < 0.005  # 10 % of the weight over the stiffness
    assert np.abs(r.v[-1]).max() < 1e-3
    assert run.metric("torque.excess") == 0
    assert not run.comparison.force[open_yet].any()
    assert run.comparison.force[~open_yet].any()


def projector(system, q, rows):
    A = rows[:, None] * system.constraint_jacobian(q).full()
    return np.eye(system.nv) - np.linalg.pinv(A, 1e-8) @ A


def closed(system, q, rows):
    for _ in range(6):
        A = rows[:, None] * system.constraint_jacobian(q).full()
        gap = rows * system.constraint(q).full().ravel()
        q = system.integrate(q, -np.linalg.pinv(A, 1e-8) @ gap).full().ravel()
    return q


def desired_velocity(system, q, reference, rows):
    """`s = P (v_d + K_p e)`, by NumPy."""
    e = system.difference(q, reference[0]).full().ravel()
    return projector(system, q, rows) @ (reference[1] + GAIN * e)


def moving(start, rate, second):
    """A reference of constant acceleration: (q, v) at a time."""
    return lambda t: (start + t * rate + t * t / 2 * second, rate + t * second)


@pytest.mark.parametrize("mask", [(0, 1, 1), (1, 0, 0), (0, 0, 0), (0, 1, 0)])
@pytest.mark.every(4)
def test_the_energy_of_the_velocity_error_falls_by_damping_alone(mask):
    """`d/dt ½ (v - s)ᵀ M (v - s) = -(v - s)ᵀ K_d (v - s)`, along the motion that u causes."""
    x = ca.SX.sym("q", 9), ca.SX.sym("v", 9)
    parts = {"M": arms().mass_matrix(x[0]), "h": arms().bias_force(*x), "B": np.eye(9)}
    parts |= {"force": arms().passive_force(*x), "phi": arms().constraint(x[0])}
    every = mb.from_equations(*x, **parts).with_mask()  # an actuator each: nothing is out of reach
    rows, K_d = np.repeat(mask, 6).astype(float), np.diag(np.linspace(1.0, 9.0, 9))
    K_d[0, 3] = K_d[3, 0] = 0.7
    paper = {"metric": np.eye(9), "options": LawOptions(ctrl_limits=wide(every))}
    tracking = dependent_tracking(every, kp=GAIN, kd=K_d, **paper)
    rng, fd = np.random.default_rng(4), mb.forward_dynamics(every, derivatives=False)
    for q, v in zip(*(x.T for x in manifold_states(arms(), 3, 5, rows=rows)), strict=True):
        start, rate, second = q + 0.1 * rng.normal(size=9), rng.normal(size=9), rng.normal(size=9)
        reference = moving(start, rate, second)
        u, _, status, *_ = tracking.function(q, v, [*start, *rate, *second], rows, [])
        assert status == 0
        a = fd(q, v, u, rows)[0].full().ravel()

        def energy(t, q=q, v=v, a=a, reference=reference):
            there = closed(arms(), q + t * v + t * t / 2 * a, rows)
            error = v + t * a - desired_velocity(arms(), there, reference(t), rows)
            return error @ arms().mass_matrix(there).full() @ error / 2

        error = v - desired_velocity(arms(), q, reference(0.0), rows)
        power = (energy(STEP) - energy(-STEP)) / (2 * STEP)
        loss = -error @ projector(arms(), q, rows) @ K_d @ error
        assert loss < -1e-3
        assert power == pytest.approx(loss, abs=DIFFERENCES * (1 + abs(loss)))


def test_the_force_is_that_of_the_papers_matrices_with_any_virtual_mass():
    """`M̄ ds/dt + C̄ s + P (g - f_passive) - P K_d (v - s)`, ds/dt by differences."""
    system = mb.read_mjcf(models.path("five_bar"))
    tracking = dependent_tracking(
        system, kp=GAIN, kd=3.0, options=LawOptions(ctrl_limits=wide(system))
    )
    rows, rng = np.ones(system.nc), np.random.default_rng(2)
    for q, v in zip(*(x.T for x in manifold_states(system, 4, 3)), strict=True):
        q_d, v_d, a_d = q + 0.1 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)

        def s_at(t, q=q, v=v, reference=moving(q_d, v_d, a_d)):  # noqa: B008
            return desired_velocity(system, closed(system, q + t * v, rows), reference(t), rows)

        s, s_dot = s_at(0.0), (s_at(STEP) - s_at(-STEP)) / (2 * STEP)
        P, B = projector(system, q, rows), system.actuation(q).full()
        still = system.gravity_force(q).full() - system.passive_force(q, v).full()
        u = tracking.function(q, v, [*q_d, *v_d, *a_d], [])[0].full().ravel()
        for mass in (0.02, 5.0):
            terms = virtual_mass_terms(system, virtual_mass=mass)(q=q, v=v)
            force = terms["M_bar"].full() @ s_dot + terms["C_bar"].full() @ s
            force += P @ (still.ravel() - 3.0 * (v - s))
            expected = np.linalg.pinv(P @ B, 1e-8) @ force
            assert_allclose(u, expected, atol=DIFFERENCES * (1 + np.abs(u).max()))


@pytest.mark.long
def test_a_swinging_reference_is_tracked_and_the_mask_switches_the_same_law():
    system = mb.read_mjcf(models.path("five_bar"), switchable=True)
    tracking = dependent_tracking(
        system, kp=GAIN, kd=2.0, options=LawOptions(ctrl_limits=wide(system))
    )
    rows = np.ones(system.nc)
    middle = closed(system, np.array(system.tree.q0), rows)
    swing = projector(system, middle, rows) @ np.array([1.0, 0, 0, -1.0])

    def reference(t):
        """The pose on the manifold nearest to a swing, with rates by differences."""
        times = (t - 1e-3, t, t + 1e-3)
        poses = [closed(system, middle + 0.3 * np.sin(2 * s) * swing, rows) for s in times]
        rate = (poses[2] - poses[0]) / 2e-3
        return np.concatenate([poses[1], rate, (poses[2] - 2 * poses[1] + poses[0]) / 1e-6])

    def force(t, q, v):
        u, _, status, *_ = tracking.function(q, v, reference(t), [1.0], [])
        assert status == 0
        return system.actuation(q).full() @ u.full().ravel()

    q0 = closed(system, middle + 0.2 * np.array([1, 0.5, 0, 0]), rows)
    run = mb.simulate(system, q0, np.zeros(4), 1.6, force=force, rtol=1e-6, atol=1e-8)
    gap = [np.abs(q - reference(t)[:4]).max() for t, q in zip(run.t, run.q, strict=True)]
    assert gap[0] > 0.1
    assert gap[-1] < 1e-4
    assert tracking.function(run.q[0], run.v[0], reference(0.0), [0.0], [])[2] == 2  # loop open


def test_rows_and_gains_that_do_not_fit_are_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    rows = mb.from_equations(q, v, M=np.eye(2), h=np.zeros(2), B=np.eye(2), psi=v[0] - 1)
    refused(
        err.UnsupportedFeatureError, "rows that are not", lambda: dependent_tracking(rows, kd=1.0)
    )
    refused(err.ProblemError, "kd = 0", lambda: dependent_tracking(arms(), kd=0.0))
    refused(err.ProblemError, "sigma", lambda: DryFriction(sigma=-0.1))
    for bad in ({"kp": -1.0}, {"kd": (1.0, 2.0)}):
        with pytest.raises(err.ProblemError, match=next(iter(bad))):
            dependent_regulation(arms(), **({"kp": 1.0, "kd": 1.0} | bad))
