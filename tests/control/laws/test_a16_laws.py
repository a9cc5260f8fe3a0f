"""A16's regulator and tracking: energies that fall, friction that holds, masks that switch."""

import warnings

import casadi as ca
import numpy as np
import pytest
from manifold_states import manifold_states, outputs_of
from support.admissible_states import call
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.laws import dependent_regulation, dependent_tracking
from mbcasadi.dynamics import virtual_mass_terms
from mbcasadi.validation import ScenarioOptions, compile_controller, validate

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
    return dependent_regulation(arms, kp=KP, kd=KD, sigma=SIGMA, ctrl_limits=wide, **plain)


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
            arms, kp=KP, kd=KD, sigma=SIGMA, virtual_mass=mass, metric=np.eye(arms.nv)
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
        law = dependent_regulation(arms, kp=1.0, kd=1.0, sigma=1.5)
    assert "sticks" in law.controller.notes["sigma"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dependent_regulation(arms, kp=1.0, kd=1.0).controller.notes["sigma"] == "0.5"


@pytest.mark.parametrize("bad", [{"kp": -1.0}, {"kd": (1.0, 2.0)}, {"sigma": -0.1}])
def test_gains_that_make_no_law_are_refused(arms, bad):
    with pytest.raises(err.ProblemError, match=next(iter(bad))):
        dependent_regulation(arms, **({"kp": 1.0, "kd": 1.0} | bad))


CIRCLE = models.path("particle_on_circle")

STIFF, SOFT = 16.0, 1e-6  # N/m of x and z; N m/rad of the massless rod, which is to stay out of it


def circle_law(sigma):
    system = mb.read_mjcf(CIRCLE)
    gains = {"kp": (STIFF, STIFF, SOFT), "kd": (6.0, 6.0, SOFT)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dependent_regulation(system, **gains, sigma=sigma)


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


SWITCH = models.path("topology_switch")

LIMIT = 8.0  # N m

pendulums = pytest.fixture(scope="module")(lambda: mb.read_mjcf(SWITCH, switchable=True))


@pytest.fixture(scope="module")
def latch_law(pendulums):
    return dependent_regulation(pendulums, kp=20.0, kd=1.0, sigma=0.3)


@pytest.fixture(scope="module")
def code(latch_law):
    with compile_controller(latch_law) as program:
        yield program


def test_huge_goals_are_clipped_to_the_limits(pendulums, code):
    q = np.array(pendulums.tree.q0)
    out = code.function(q=q, v=np.zeros(4), ref=q + 50, mask=1, z=np.zeros(0))
    assert float(out["status"]) == 1.0
    np.testing.assert_allclose(np.abs(out["u"].full()), LIMIT)


def test_two_motors_rule_the_latched_loop_and_cannot_rule_the_open_pendulums(
    pendulums, latch_law, code
):
    """Open: 4 freedoms, status 2. Latched in mid-run: 2 freedoms, and the goal is reached."""
    latched, closed = 0.1, np.array(pendulums.tree.q0)
    goal = mb.assemble(pendulums, closed + np.array([0.15, 0, 0.1, 0]), mask=np.ones(3))
    report = validate(
        code,
        SWITCH,
        3.0,
        reference=lambda t: closed if t < latched else goal,
        scenario=ScenarioOptions(
            mask=lambda t: [t >= latched], switch=lambda t: {"latch": t >= latched}
        ),
        perturb={"mass": 0.1},
        disturbance=lambda t: [0, 0, 0, 0.4 * (1.0 <= t < 1.2)],
    )
    run = report.runs[0]
    r = run.recording
    before = r.t < latched
    assert set(r.status[before]) == {2}
    assert set(r.status[~before]) <= {0, 1}
    distance = np.linalg.norm(r.q - goal, axis=1)
    assert distance[before].max() > 0.1  # rad
    assert distance[(r.t > 1) & (r.t < 1.3)].max() > 3 * distance[-1]  # the push
    assert distance[-1] < 0.005  # 10 % of the weight over the stiffness
    assert np.abs(r.v[-1]).max() < 1e-3
    assert run.metric("torque.excess") == 0
    open_yet = run.comparison.t < latched
    assert not run.comparison.force[open_yet].any()
    assert run.comparison.force[~open_yet].any()


STEP = 1e-5  # s, of central differences along a motion

OF_DIFFERENCES = 1e-5  # of such differences, of powers of some 10 W

GAIN = 6.0


def wide(system):
    return np.tile([-1e6, 1e6], (system.nu, 1))


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
    q_d, v_d = reference
    e = system.difference(q, q_d).full().ravel()
    return projector(system, q, rows) @ (v_d + GAIN * e)


@pytest.mark.parametrize("mask", [(0, 1, 1), (1, 0, 0), (0, 0, 0), (0, 1, 0)])
def test_the_energy_of_the_velocity_error_falls_by_damping_alone(mask):
    """`d/dt ½ (v - s)ᵀ M (v - s) = -(v - s)ᵀ K_d (v - s)`, along the motion that u causes."""
    arms = mb.read_mjcf(models.path("two_arm_carry"), switchable=True)
    every = mb.from_equations(  # every coordinate has an actuator, so nothing is out of reach
        *(x := [ca.SX.sym("q", 9), ca.SX.sym("v", 9)]),
        M=arms.mass_matrix(x[0]),
        h=arms.bias_force(*x),
        force=arms.passive_force(*x),
        B=np.eye(9),
        phi=arms.constraint(x[0]),
    ).with_mask()
    rows = np.repeat(mask, 6).astype(float)
    K_d = np.diag(np.linspace(1.0, 9.0, 9))
    K_d[0, 3] = K_d[3, 0] = 0.7
    law = dependent_tracking(
        every, kp=GAIN, kd=K_d, metric=np.eye(9), ctrl_limits=wide(every)
    )  # P as in the paper
    rng, fd = np.random.default_rng(4), mb.forward_dynamics(every, derivatives=False)
    q_all, v_all = manifold_states(arms, 3, 5, rows=rows)
    for q, v in zip(q_all.T, v_all.T, strict=True):
        start, rate, second = q + 0.1 * rng.normal(size=9), rng.normal(size=9), rng.normal(size=9)

        def reference(t, start=start, rate=rate, second=second):
            return start + t * rate + t * t / 2 * second, rate + t * second

        u, _, status, *_ = law.function(q, v, [*start, *rate, *second], rows, [])
        assert status == 0
        a = fd(q, v, u, rows)[0].full().ravel()

        def energy(t, q=q, v=v, a=a, reference=reference):
            there = closed(arms, q + t * v + t * t / 2 * a, rows)
            error = v + t * a - desired_velocity(arms, there, reference(t), rows)
            return error @ arms.mass_matrix(there).full() @ error / 2

        error = v - desired_velocity(arms, q, reference(0.0), rows)
        power = (energy(STEP) - energy(-STEP)) / (2 * STEP)
        loss = -error @ projector(arms, q, rows) @ K_d @ error
        assert loss < -1e-3
        assert power == pytest.approx(loss, abs=OF_DIFFERENCES * (1 + abs(loss)))


def test_the_force_is_that_of_the_papers_matrices_with_any_virtual_mass():
    """`M̄ ds/dt + C̄ s + P (g - f_passive) - P K_d (v - s)`, ds/dt by differences."""
    system = mb.read_mjcf(models.path("five_bar"))
    law = dependent_tracking(system, kp=GAIN, kd=3.0, ctrl_limits=wide(system))
    rows, rng = np.ones(system.nc), np.random.default_rng(2)
    q_all, v_all = manifold_states(system, 4, 3)
    for q, v in zip(q_all.T, v_all.T, strict=True):
        q_d, v_d, a_d = q + 0.1 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)

        def s_at(t, q=q, v=v, q_d=q_d, v_d=v_d, a_d=a_d):
            there = closed(system, q + t * v, rows)
            moving = q_d + t * v_d + t * t / 2 * a_d, v_d + t * a_d
            return desired_velocity(system, there, moving, rows)

        s, s_dot = s_at(0.0), (s_at(STEP) - s_at(-STEP)) / (2 * STEP)
        P, B = projector(system, q, rows), system.actuation(q).full()
        still = system.gravity_force(q).full() - system.passive_force(q, v).full()
        u = law.function(q, v, [*q_d, *v_d, *a_d], [])[0].full().ravel()
        for mass in (0.02, 5.0):
            terms = virtual_mass_terms(system, virtual_mass=mass)(q=q, v=v)
            force = terms["M_bar"].full() @ s_dot + terms["C_bar"].full() @ s
            force += P @ (still.ravel() - 3.0 * (v - s))
            expected = np.linalg.pinv(P @ B, 1e-8) @ force
            np.testing.assert_allclose(u, expected, atol=OF_DIFFERENCES * (1 + np.abs(u).max()))


def test_a_swinging_reference_is_tracked_and_the_mask_switches_the_same_law():
    system = mb.read_mjcf(models.path("five_bar"), switchable=True)
    law = dependent_tracking(system, kp=GAIN, kd=2.0, ctrl_limits=wide(system))
    rows = np.ones(system.nc)
    middle = closed(system, np.array(system.tree.q0), rows)
    swing = projector(system, middle, rows) @ np.array([1.0, 0, 0, -1.0])

    def reference(t):
        """The pose on the manifold nearest to a swing, with rates by differences."""
        times = (t - 1e-3, t, t + 1e-3)
        poses = [closed(system, middle + 0.3 * np.sin(2 * s) * swing, rows) for s in times]
        rate = (poses[2] - poses[0]) / 2e-3
        return np.concatenate([poses[1], rate, (poses[2] - 2 * poses[1] + poses[0]) / 1e-6])

    q0 = closed(system, middle + 0.2 * np.array([1, 0.5, 0, 0]), rows)

    def force(t, q, v):
        u, _, status, *_ = law.function(q, v, reference(t), [1.0], [])
        assert status == 0
        return system.actuation(q).full() @ u.full().ravel()

    run = mb.simulate(system, q0, np.zeros(4), 3.0, force=force, rtol=1e-6, atol=1e-8)
    gap = [np.abs(q - reference(t)[:4]).max() for t, q in zip(run.t, run.q, strict=True)]
    assert gap[0] > 0.1
    assert gap[-1] < 1e-4
    at = {"q": run.q[:1].T, "v": run.v[:1].T, "ref": reference(0.0)[:, None], "z": np.zeros((0, 1))}
    assert outputs_of(law.function, at | {"mask": np.zeros((1, 1))})["status"] == 2  # loop open


def test_rows_and_gains_that_do_not_fit_are_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    moving = mb.from_equations(q, v, M=np.eye(2), h=np.zeros(2), B=np.eye(2), psi=v[0] - 1)
    with pytest.raises(err.UnsupportedFeatureError, match="rows that are not"):
        dependent_tracking(moving, kd=1.0)
    system = mb.read_mjcf(models.path("five_bar"))
    refused(err.ProblemError, "kd = 0", lambda: dependent_tracking(system, kd=0.0))
