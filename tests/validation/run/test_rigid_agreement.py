"""Our rigid equations against MuJoCo's soft constraints: the difference and its cause."""

from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from support.corpora import robot
from support.validation_problems import crank_controller, idle_controller, swing

from mbcasadi import models
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.plant import Plant, soften
from mbcasadi.system import read_mjcf
from mbcasadi.validation import ReportOptions, validate
from mbcasadi.validation.metrics.comparison import evaluate_rows, relative_difference
from mbcasadi.validation.metrics.softness import extrapolate_to_zero

RIGID_MEDIAN = 1e-4  # the figure to reach on the four-bar; measured 3e-5 to 7e-5
SOFT_MEDIAN = 1e-3  # MuJoCo's default softness is at least ten times worse
# The recipe leaves (1 - d) / d = 1e-4 times the ratio of MuJoCo's estimate of the rows' inverse
# inertia to the true one, which is a few units for spatial loops and near singular poses.
RIGID_MEDIAN_ANY = 1e-3
RIGID_LIMIT = 2e-6  # extrapolated to s = 0 from s down to 1e-4, remainder of order s³
OWN_MATRICES = 1e-8  # medians measured: 3e-10 to 3e-9
STATES = 200
OTHER_LOOPS = ["five_bar", "spatial_loop", "cooperating_arms", "slider_crank"]


class Sample(NamedTuple):
    """States of a plant, (n, ...) each, and its accelerations."""

    q: np.ndarray
    v: np.ndarray
    applied: np.ndarray
    a: np.ndarray
    a_rigid: np.ndarray


def rigid_acceleration(plant):
    """Solve a rigid system made of MuJoCo's own M, J, forces and reference acceleration."""
    model, data = plant.model, plant.data
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    J = np.array(data.efc_J).reshape(data.nefc, model.nv)[: data.ne]
    K = np.block([[M, -J.T], [J, np.zeros((data.ne, data.ne))]])
    free = data.qfrc_passive - data.qfrc_bias + data.qfrc_actuator
    right = np.concatenate([free, data.efc_aref[: data.ne]])
    return np.linalg.lstsq(K, right, rcond=1e-10)[0][: model.nv]


def sample(name, *, impedance):
    """Visit consistent states with random velocities and controls, along a random walk."""
    plant = Plant(models.path(name), rigid=True)
    soften(plant.model, 2 * plant.timestep, impedance)
    rng, q, rows = np.random.default_rng(7), plant.q, []
    for _ in range(STATES):
        plant.reset(plant.integrate(q, 0.2 * rng.standard_normal(plant.nv)))
        q = plant.q
        plant.reset(q, rng.standard_normal(plant.nv))
        seen = plant.measure(rng.uniform(*plant.ctrl_range.T))
        rows.append((seen.q, seen.v, seen.actuator_force, seen.a, rigid_acceleration(plant)))
    return Sample(*(np.array(column) for column in zip(*rows, strict=True)))


def ours(name, seen):
    system = read_mjcf(models.path(name))
    dynamics = forward_dynamics(system, formulation="projection", derivatives=False)
    return evaluate_rows(dynamics, seen.q, seen.v, seen.applied)[0]


def test_the_rigid_recipe_agrees_with_our_forward_dynamics_on_consistent_states():
    soft, rigid = (sample("four_bar", impedance=d) for d in (0.95, 0.9999))
    assert np.median(relative_difference(ours("four_bar", soft), soft.a)) > SOFT_MEDIAN
    assert np.median(relative_difference(ours("four_bar", rigid), rigid.a)) < RIGID_MEDIAN


@pytest.mark.parametrize("name", ["four_bar", *OTHER_LOOPS])
@pytest.mark.every(2)
def test_a_rigid_system_of_mujocos_own_matrices_gives_our_acceleration(name):
    seen = sample(name, impedance=0.9999)
    assert np.median(np.linalg.norm(seen.a_rigid, axis=1)) > 1.0
    assert np.median(relative_difference(ours(name, seen), seen.a_rigid)) < OWN_MATRICES


@pytest.mark.parametrize("name", OTHER_LOOPS)
@pytest.mark.every(3)
def test_redundant_loops_agree_with_the_rigid_recipe_as_well(name):
    seen = sample(name, impedance=0.9999)
    assert np.median(relative_difference(ours(name, seen), seen.a)) < RIGID_MEDIAN_ANY


@pytest.fixture(scope="module")
def soft_run():
    # MuJoCo's default solref and solimp, in place of the model's stiffer ones.
    text = models.path("four_bar").read_text()
    soft = text.replace('<equality solref="0.004 1" solimp="0.99 0.999 0.001"/>', "")
    assert soft != text
    return validate(
        crank_controller(), soft, 1.0, reference=swing, report=ReportOptions(softness=True)
    ).runs[0]


def test_softness_explains_the_disagreement_of_a_soft_plant(soft_run):
    sweep = soft_run.softness
    assert sweep.own > SOFT_MEDIAN
    assert list(sweep.errors) == sorted(sweep.errors, reverse=True)
    assert sweep.rigid < RIGID_LIMIT
    assert sweep.explained_share > 0.999
    assert "explains 100.00 %" in sweep.sentence


def test_a_longer_time_constant_of_solref_opens_the_loop_further(soft_run):
    constants, gaps = zip(*soft_run.softness.gaps, strict=True)
    assert list(constants) == sorted(constants)
    assert list(gaps) == sorted(gaps)
    assert gaps[-1] > 10 * gaps[0] > 0.0


@pytest.mark.long
def test_softness_does_not_explain_a_plant_of_another_mass():
    run = validate(
        crank_controller(),
        models.path("four_bar"),
        0.5,
        reference=swing,
        report=ReportOptions(softness=True),
        rigid=True,
        perturb={"mass": 0.1},
    ).runs[0]
    assert run.softness is not None
    assert run.softness.rigid > 0.03  # the 10 % that the plant is heavier
    assert run.softness.explained_share < 0.1


def test_an_overconstrained_loop_is_not_locked_by_the_gap_that_softness_leaves():
    # Off the manifold, rows that are redundant on it are independent: enforced exactly,
    # they would lock the linkage, and the acceleration would be wrong by its own size.
    path = models.path("spatial_loop")
    run = validate(idle_controller(path), path, 0.3).runs[0]
    assert run.metric("closure.rows") > 1e-7
    assert np.abs(run.recording.v).max() > 1
    assert run.metric("agreement.force_median") < 1e-3
    assert run.metric("agreement.a_median") < 1e-3


@pytest.mark.parametrize(
    "name", ["men__robotiq_2f85__2f85", "men__aloha__aloha", "men__franka_emika_panda__panda"]
)
def test_softness_explains_the_disagreement_on_robots_that_others_modelled(name):
    path = robot(name)
    sweep = (
        validate(idle_controller(path), path, 0.2, report=ReportOptions(softness=True))
        .runs[0]
        .softness
    )
    assert sweep is not None
    assert sweep.own > SOFT_MEDIAN
    assert sweep.rigid < RIGID_LIMIT


def test_the_constraint_force_has_mujocos_sign_and_size(soft_run):
    comparison = soft_run.comparison
    alike = np.sum(comparison.force * comparison.mujoco_force, axis=1)
    assert (alike > 0).mean() > 0.99
    assert soft_run.metric("agreement.force_median") < 0.2
    assert soft_run.metric("closure.plant") > 1e-7


def test_our_constraint_equations_and_mujocos_residual_are_the_same_numbers(soft_run):
    record, comparison = soft_run.recording, soft_run.comparison
    thin = len(record.t) // len(comparison.t)
    np.testing.assert_allclose(comparison.drift, record.residual[::thin], rtol=1e-6, atol=1e-12)


def test_extrapolation_is_exact_for_the_polynomials_that_it_is_made_for():
    s = np.array([0.3, 0.2, 0.1])
    values = np.array([[2 - 3 * x + 5 * x**2, x] for x in s])
    np.testing.assert_allclose(extrapolate_to_zero(s, values), [2.0, 0.0], atol=1e-13)
