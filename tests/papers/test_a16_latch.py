"""A mechanism that latches in mid-swing: A16's inertia, its interval, and the inelastic closure.

The references are NumPy on M and A: spectra, a sweep over virtual masses, the projection of a
velocity in the metric of M, and half of the mechanism with its tip on a straight line.
"""

import casadi as ca
import numpy as np
import pytest
from support.examples import example, results

import mbcasadi as mb
from mbcasadi.dynamics import virtual_mass_terms
from mbcasadi.simulation import InitialConditions

LATCH = example(5)
EXACT = 1e-9  # relative; inertias have condition 14 and less


@pytest.fixture(scope="module")
def system():
    return LATCH["topology_switch"].system()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return results(LATCH, tmp_path_factory.mktemp("figure"))


def free_inertias(system, q, mask):
    """Eigenvalues of M on null(A), ascending."""
    A = np.array(system.constraint_jacobian(q)) * np.array(mask)[:, None]
    rank = np.linalg.matrix_rank(A)
    Z = np.linalg.svd(A)[2][rank:].T
    return np.linalg.eigvalsh(Z.T @ np.array(system.mass_matrix(q)) @ Z)


def test_the_latch_closes_where_the_tips_meet_and_its_rows_switch_on(found):
    run, closure = found["run"], found["closure"]
    assert closure.gap < 1e-12
    before, after = run.t < closure.time, run.t > closure.time
    assert (run.rank[before] == 0).all()
    assert (run.rank[after] == 2).all()
    assert run.drift.max() < 1e-10
    for part in (before, after):
        assert np.ptp(run.energy[part]) < 2e-8  # J: rtol 1e-9 of a few joules, in some steps


def test_the_closure_projects_the_velocity_in_the_metric_of_the_inertia(system, found):
    closure, run = found["closure"], found["run"]
    q = run.q[np.searchsorted(run.t, closure.time)]
    M, A = np.array(system.mass_matrix(q)), np.array(system.constraint_jacobian(q))
    across = np.linalg.solve(M, A.T) @ np.linalg.solve(A @ np.linalg.solve(M, A.T), A)
    v = closure.v_before
    assert np.abs(A @ v).max() > 1.0  # m/s with which the tips meet
    np.testing.assert_allclose(closure.v_after, v - across @ v, rtol=EXACT)
    jump = closure.v_after - v
    carnot = 0.5 * jump @ M @ jump  # J, kinetic energy of the lost velocities
    assert closure.energy_loss == pytest.approx(carnot, rel=EXACT)
    assert closure.energy_loss == pytest.approx(0.7066, abs=5e-5)


def test_the_interval_is_that_of_the_free_inertias_and_holds_the_default(system, found):
    """(12), (13)."""
    run = found["run"]
    for k in range(0, run.t.size, 20):
        inertias = free_inertias(system, run.q[k], run.mask[k])
        assert found["low"][k] == pytest.approx(inertias[0], rel=EXACT)
        assert found["high"][k] == pytest.approx(inertias[-1], rel=EXACT)
        assert inertias[0] < found["virtual_mass"][k] < inertias[-1]


def test_the_condition_is_that_of_the_printed_spectrum_and_least_within_the_interval(system, found):
    """(13), (14), by eigenvalues of M̄ itself for a sweep of virtual masses."""
    run = found["run"]
    for k in (0, run.t.size // 2):
        q, v, mask = run.q[k], run.v[k], run.mask[k]
        low, *_, high = free_inertias(system, q, mask)
        masses = np.geomspace(1e-5, 10.0, 13)
        conditions = []
        for mass in masses:
            terms = virtual_mass_terms(system.with_mask(), virtual_mass=mass)
            out = terms(q=q, v=v, mask=mask)
            spectrum = np.linalg.eigvalsh(np.array(out["M_bar"]))
            conditions.append(spectrum[-1] / spectrum[0])
            assert float(out["cond"]) == pytest.approx(conditions[-1], rel=EXACT)
        inside = (masses >= low) & (masses <= high)
        least = np.array(conditions)[inside]
        np.testing.assert_allclose(least, high / low, rtol=EXACT)
        if mask.any():
            assert inside.any()
            assert (np.array(conditions)[~inside] > least[0]).all()


def test_a_light_and_a_heavy_virtual_mass_cost_condition_and_change_no_motion(system, found):
    run = found["run"]
    closed = run.mask[:, 0] > 0
    for name in ("too light", "too heavy"):
        assert (found[name][closed] > 10 * found["default"][closed]).all()
    motions = [
        mb.forward_dynamics(system.with_mask(), "virtual_mass", virtual_mass=mass)
        for mass in LATCH["MASSES"].values()
    ]
    for k in range(0, run.t.size, 20):
        a = [np.array(m(q=run.q[k], v=run.v[k], f=0, mask=run.mask[k])["a"]) for m in motions]
        np.testing.assert_allclose(a[1], a[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(a[2], a[0], rtol=1e-8, atol=1e-8)


def test_latched_each_half_moves_like_one_pendulum_whose_tip_runs_on_the_middle_line(found):
    twin, run, closure = LATCH["topology_switch"], found["run"], found["closure"]
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    joints = [ca.vertcat(-twin.PIVOT, 0)]
    kinetic, potential = 0, 0
    for i in range(2):
        length, mass = twin.LENGTHS[i], twin.MASSES[i]
        joints.append(joints[-1] + length * ca.vertcat(ca.cos(q[i]), ca.sin(q[i])))
        middle = (joints[-1] + joints[-2]) / 2
        kinetic += mass / 2 * (ca.sumsqr(ca.jtimes(middle, q, v)) + length**2 / 12 * v[i] ** 2)
        potential += mass * 9.81 * middle[1]
    half = mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, phi=joints[2][0])
    after = run.t > closure.time
    first = np.argmax(after)
    alone = mb.simulate(
        half,
        run.q[first, :2],
        run.v[first, :2],
        run.t[-1] - run.t[first],
        initial=InitialConditions(t0=run.t[first]),
        times=run.t[after],
    )
    np.testing.assert_allclose(run.q[after, :2], alone.q, atol=1e-6)
    np.testing.assert_allclose(run.q[:, 2:], -np.pi - run.q[:, :2], atol=1e-6)  # mirror image
