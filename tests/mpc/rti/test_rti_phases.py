"""The C of a real-time iteration in two phases: together they are the tick, apart they are safe."""

import numpy as np
import pytest
from support.mpc_mechanisms import cart_pole
from support.problems import problem

from mbcasadi.codegen import export_c
from mbcasadi.mpc.rti.controller import real_time_iteration

HORIZON, PERIOD, LIMIT, RATE = 20, 0.04, 12.0, 5.0
STATES, PUSHED = 400, 25
SAME_C = 1e-9  # and DAQP in Python
SOLVED, BAD_INPUT = 0, 3
OPTIONS = {"plain": ({}, 0), "rates and delay": ({"du_bounds": [[-RATE, RATE]], "S": [0.01]}, 2)}


PLAIN = pytest.param("plain", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[PLAIN, "rates and delay"])
def iteration(request, tmp_path_factory):
    """Return a controller that holds a pole upright, and its C."""
    more, delay = OPTIONS[request.param]
    weights = {"Q": [1, 1, 0.01, 0.01], "R": 0.05, "Q_end": [20, 20, 2, 2]}
    ocp = problem(cart_pole(upright=True), HORIZON, PERIOD, **weights, **more)
    rti = real_time_iteration(ocp, delay=delay)
    return rti, export_c(rti, tmp_path_factory.mktemp("rti") / "c")


def tick_of(rti, x, z, setpoint=0.3):
    ref = rti.ocp.parameters(setpoint_q=[setpoint, 0]).ravel()
    return {"q": x[:2], "v": x[2:4], "ref": ref, "z": z}


def known(tick):
    return {name: tick[name] for name in ("ref", "z")}


def equal(first, second):
    return all(first[name].tobytes() == second[name].tobytes() for name in first)


def closed_loop(rti, project, ticks):
    """Return the inputs and answers of a pole that is pushed; each tick is run in phases too."""
    rng, x, z = np.random.default_rng(0), np.zeros(4), rti.controller.z0
    whole, apart, record = project.memory(), project.memory(), []
    dynamics = cart_pole_step(rti)
    for k in range(ticks):
        if k % PUSHED == 0:
            x = 0.05 * rng.normal(size=4) * [1, 1, 4, 8]
        tick = tick_of(rti, x, z, 0.2 * rng.normal())
        project.prepare(apart, known(tick))
        answer = project.feedback(apart, tick)
        assert equal(answer, project.step(whole, tick)), k
        record.append((tick, answer))
        z, x = answer["z_next"], dynamics(x, answer["u"])
    return record


def cart_pole_step(rti):
    """Return the motion of (q, v) alone, without the controls that a problem may remember."""
    ocp = rti.ocp
    p = ocp.parameters()[0]
    more = np.zeros(ocp.nx - 4)
    return lambda x, u: ocp.dynamics(np.append(x, more), u, p).full().ravel()[:4]


def test_both_phases_are_the_tick_bit_for_bit_and_the_function(iteration):
    rti, project = iteration
    record = closed_loop(rti, project, STATES)
    law = rti.function.map(STATES)
    names = rti.function.name_in()
    expected = law(*(np.array([tick[name] for tick, _ in record]).T for name in names))
    u, _, status, *_ = (np.array(out).T for out in expected)
    actual = np.array([answer["u"] for _, answer in record])
    states = np.array([answer["status"] for _, answer in record])
    np.testing.assert_array_equal(states, status)
    np.testing.assert_allclose(actual, u, atol=SAME_C)
    assert np.mean(states == SOLVED) > 0.9
    assert np.abs(actual).max() > LIMIT / 2
    assert any(np.any(answer["z_next"][-rti.memory.rows :]) for _, answer in record)


def test_without_a_preparation_the_plan_goes_on_and_nothing_is_believed(iteration):
    rti, project = iteration
    record = closed_loop(rti, project, 5)
    tick, answer = record[-1]
    x, u = rti.trajectory(tick["z"])
    for prepared in (None, known(record[0][0]), known(tick) | {"ref": tick["ref"] + 1e-9}):
        memory = project.memory()
        if prepared:
            project.prepare(memory, prepared)
        refused = project.feedback(memory, tick)
        assert refused["status"] == BAD_INPUT
        assert np.all(refused["residual"] == np.inf)
        assert refused["u"] == pytest.approx(np.clip(u[0], -LIMIT, LIMIT), abs=1e-12)
        assert np.abs(refused["u"] - answer["u"]).max() > 1e-6
        x_next, u_next = rti.trajectory(refused["z_next"])
        np.testing.assert_array_equal(x_next[:-1], x[1:])
        np.testing.assert_array_equal(u_next[:-1], u[1:])
        project.prepare(memory, known(tick))
        assert equal(project.feedback(memory, tick), answer)
