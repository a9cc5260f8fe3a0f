"""A16's regulator as generated C: one program for every topology, safe whatever comes in."""

import numpy as np
import pytest
from manifold_states import manifold_states, outputs_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import DryFriction, dependent_regulation
from mbcasadi.validation import ScenarioOptions, compile_controller, validate

STATES, SAME = 1000, 1e-12
SWITCH = models.path("topology_switch")
LIMIT = 8.0  # N m


@pytest.fixture(scope="module")
def pendulums():
    return mb.read_mjcf(SWITCH, switchable=True)


@pytest.fixture(scope="module")
def law(pendulums):
    return dependent_regulation(pendulums, kp=20.0, kd=1.0, friction=DryFriction(sigma=0.3))


@pytest.fixture(scope="module")
def code(law):
    with compile_controller(law) as program:
        yield program


def test_the_c_equals_the_function_on_a_thousand_states_of_both_topologies(pendulums, law, code):
    rng = np.random.default_rng(4)
    parts = [manifold_states(pendulums, STATES // 2, 5, rows=np.full(3, on)) for on in (0, 1)]
    q, v = (np.hstack([part[i] for part in parts]) for i in (0, 1))
    at = {"q": q, "v": v, "ref": q + rng.normal(size=q.shape), "z": np.zeros((0, STATES))}
    at["mask"] = np.repeat([[0.0, 1.0]], STATES // 2, axis=1)
    ours, theirs = outputs_of(law.function, at), outputs_of(code.function, at)
    assert set(ours["status"].ravel()) == {0.0, 1.0, 2.0}
    for name, values in ours.items():
        np.testing.assert_allclose(theirs[name], values, rtol=SAME, atol=SAME, err_msg=name)


def test_huge_goals_are_clipped_to_the_limits(pendulums, code):
    q = np.array(pendulums.tree.q0)
    out = code.function(q=q, v=np.zeros(4), ref=q + 50, mask=1, z=np.zeros(0))
    assert float(out["status"]) == 1.0
    np.testing.assert_allclose(np.abs(out["u"].full()), LIMIT)


def test_two_motors_rule_the_latched_loop_and_cannot_rule_the_open_pendulums(pendulums, law, code):
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
