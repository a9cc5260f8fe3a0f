"""Fixed steps on the manifold, beside SciPy on textbook equations and the crank's own equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation_mechanisms import crank_motion, slider_crank
from support.constrained_mechanisms import MECHANISMS, mechanism
from support.motion_references import solve

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.dynamics.terms import terms_fun
from mbcasadi.linalg import symbols
from mbcasadi.simulation import active_rows, fixed_step_fun, simulate_fixed_step
from mbcasadi.system import evaluate

H, STEPS = 1e-3, 100
MOTION_TOL = 1e-7  # rad, m and their rates after 100 steps; of the method (h⁴), at speeds near 1
MANIFOLD_TOL = 2e-12  # m, rad and their rates
LARGE = ("standing_quadruped", "doubled_feet", "standing_humanoid")  # seconds to build
SCALARS = [name for name in MECHANISMS if name not in LARGE]
STIFF = {"elastic_slider_crank": 5e-5}
"""Step, s, where h = 1e-3 is too long for the method."""
LOOP_TOL = 1e-11  # rounding of the same steps in another order


def acceleration(system):
    """Return (t, q, v) → a by singular values, from M, h, A, c of the mechanism."""
    terms = terms_fun(system)

    def a(t, q, v):
        known = {"q": q, "v": v, "t": t, "mask": np.ones(system.nc)}
        at = terms(**{name: known[name] for name in terms.name_in()})
        at = {key: x.full() for key, x in at.items()}
        f = np.zeros((1, system.nv))
        return solve(at["M"][None], at["h"].T, f, at["A"][None], at["c"].T).a[0]

    return a


def by_scipy(system, q, v, duration):
    """Return q and v at the end."""
    nv, a = system.nv, acceleration(system)

    def rate(t, y):
        return np.concatenate([y[nv:], a(t, y[:nv], y[nv:])])

    start = np.concatenate([q, v])
    end = solve_ivp(rate, [0, duration], start, method="DOP853", rtol=1e-10, atol=1e-11).y[:, -1]
    return end[:nv], end[nv:]


def residuals(system, run):
    """Return the worst of phi and of psi at the end of a run."""
    at = {"q": run.q[-1], "v": run.v[-1], "t": run.t[-1]}
    return [
        np.abs(evaluate(rows, at).full()).max(initial=0.0)
        for rows in (system.constraint, system.loop_rate)
    ]


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.every(3)
def test_steps_of_every_mechanism_move_as_the_textbook_says_and_stay_on_the_manifold(name):
    made = mechanism(name)
    system = made.system
    v0 = np.random.default_rng(5).standard_normal(system.nv)
    formulation = "lagrange" if system.semidefinite else "limbwise"
    h = STIFF.get(name, H)
    run = simulate_fixed_step(system, made.centre, v0, h, STEPS, formulation, keep=STEPS)
    assert np.abs(run.q[-1] - run.q[0]).max() > 1e-3
    assert max(residuals(system, run)) < MANIFOLD_TOL
    np.testing.assert_allclose(
        [run.drift[-1], run.drift_velocity[-1]], residuals(system, run), atol=MANIFOLD_TOL
    )
    if system.nq == system.nv and not system.semidefinite:
        q, v = by_scipy(system, run.q[0], run.v[0], h * STEPS)
        np.testing.assert_allclose(run.q[-1], q, atol=MOTION_TOL)
        np.testing.assert_allclose(run.v[-1], v, atol=MOTION_TOL)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("speed", [5.0, 9.0])
def test_a_crank_turns_through_its_singular_poses(speed, copies):
    """At them the row vanishes; it may be repeated."""
    start = [0.3, -0.3], [speed, -speed]
    run = simulate_fixed_step(slider_crank(copies), *start, 2.3e-3, 1300, keep=1)
    across = np.cos(run.q[:, 0])
    assert np.sum(np.diff(np.sign(across)) != 0) >= 2
    assert np.abs(run.q[:, 0] - crank_motion(0.3, speed, 3.0)(run.t)[0]).max() < 1e-6
    assert max(run.drift.max(), run.drift_velocity.max()) < MANIFOLD_TOL


def test_a_parallelogram_passes_its_flat_poses():
    """There it might fold; its links stay parallel, and the energy is that of the start."""
    system = mb.read_mjcf(models.path("parallelogram"))
    q0 = np.array(system.tree.q0, dtype=float)
    _, sizes, rows = np.linalg.svd(system.constraint_jacobian(q0).full())
    free = rows[np.sum(sizes > 1e-9) :].sum(axis=0)
    run = simulate_fixed_step(system, q0, 12 * free / np.abs(free).max(), H, 2000, keep=1)
    assert np.abs(run.q[:, 0] - run.q[0, 0]).max() > np.pi  # both flat poses lie between
    np.testing.assert_allclose(run.q[:, 2] - run.q[:, 0], run.q[0, 2] - run.q[0, 0], atol=1e-9)
    assert np.ptp(run.energy) < 1e-5 * np.abs(run.energy).max()
    assert max(run.drift.max(), run.drift_velocity.max()) < 1e-12 * 12


@pytest.mark.parametrize("name", ["four_bar", "bennett", "climbing_particle", "rolling_disc"])
@pytest.mark.every(2)
def test_large_mechanisms_step_in_loops_as_small_ones_in_scalars(name, monkeypatch):
    made = mechanism(name)
    v0 = np.random.default_rng(5).standard_normal(made.system.nv)
    runs = [simulate_fixed_step(made.system, made.centre, v0, H, STEPS, keep=STEPS)]
    monkeypatch.setattr(symbols, "UNROLL_LIMIT", 0)
    monkeypatch.setattr(active_rows, "UNROLL_LIMIT", 0)
    step = fixed_step_fun(made.system, H)
    assert step.is_a("MXFunction")
    runs.append(simulate_fixed_step(made.system, made.centre, v0, H, STEPS, keep=STEPS))
    for key in ("q", "v"):
        ends = [getattr(run, key)[-1] for run in runs]
        np.testing.assert_allclose(ends[1], ends[0], atol=LOOP_TOL)
    assert max(residuals(made.system, runs[1])) < MANIFOLD_TOL


@pytest.mark.parametrize(("name", "most"), [("four_bar", 3900), ("slider_crank", 3450)])
def test_a_step_of_a_planar_loop_takes_few_operations(name, most):
    assert fixed_step_fun(mb.read_mjcf(models.path(name)), H).n_instructions() < most


def test_steps_of_a_fifth_of_a_radian_stay_on_the_manifold():
    system = mb.read_mjcf(models.path("four_bar"))
    free = np.linalg.svd(system.constraint_jacobian(system.tree.q0).full())[2][-1]
    run = simulate_fixed_step(system, system.tree.q0, 20 * free / free[0], 0.01, 50, keep=1)
    assert np.abs(np.diff(run.q[:, 0])).max() > 0.2
    assert max(run.drift.max(), run.drift_velocity.max()) < MANIFOLD_TOL


def test_steps_of_half_a_radian_are_bounded():
    """Gaps before a projection are lengths of the model; v has to be projected all the same."""
    system = mb.read_mjcf(models.path("five_bar"))
    v0 = np.random.default_rng(2).standard_normal(system.nv)
    start = simulate_fixed_step(system, system.tree.q0, v0, H, 1, keep=1)
    v0 = 10 * start.v[0] / np.abs(start.v[0] / system.scales.coordinates).max()
    run = simulate_fixed_step(system, start.q[0], v0, 0.05, 10, keep=1)
    assert np.abs(np.diff(run.q, axis=0)).max() > 0.5
    assert max(run.drift.max(), run.drift_velocity.max()) < 1e-6
    ends = [run.drift[-1], run.drift_velocity[-1]]
    np.testing.assert_allclose(ends, residuals(system, run), rtol=1e-2)


@pytest.mark.parametrize("name", ["knife_edge", "rolling_disc", "climbing_particle"])
def test_long_steps_keep_rows_that_hold_for_velocities_only(name):
    made = mechanism(name)
    v0 = 3 * np.random.default_rng(5).standard_normal(made.system.nv)
    run = simulate_fixed_step(made.system, made.centre, v0, 0.05, 20, keep=20)
    assert np.abs(run.v[-1] - run.v[0]).max() > 0.1
    assert max(residuals(made.system, run)) < MANIFOLD_TOL


def test_an_overconstrained_loop_moves_with_the_accuracy_of_the_method():
    """With one step of v at a stage the error is five times as large."""
    system = mechanism("bricard").system
    v0 = np.random.default_rng(0).standard_normal(system.nv)
    slow = simulate_fixed_step(system, mechanism("bricard").centre, v0, H, 1, keep=1)
    v0 = 10 * slow.v[0] / np.abs(slow.v[0]).max()
    run = simulate_fixed_step(system, slow.q[0], v0, 4e-3, 50, keep=50)
    q, _ = by_scipy(system, run.q[0], run.v[0], 0.2)
    assert np.abs(run.q[-1] - run.q[0]).max() > 1
    assert 1e-9 < np.abs(run.q[-1] - q).max() < 4e-8
