"""Margins of sampled loops: against frequency responses, theorems of LQR, and unstable loops."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.loops_in_mujoco import ticks
from support.lqr_problems import MODELS, at_rest, weights
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import (
    DisturbanceObserver,
    InverseDynamicsQP,
    LawOptions,
    PostureTask,
    gains_from_bandwidth,
    propose_gains,
)
from mbcasadi.control.margins.loop_margins import Loop, loop_margins
from mbcasadi.control.regulators import encoders, lqr, lqr_gain, margins
from mbcasadi.control.regulators.discrete import hold_matrices
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.estimation import kalman, lqg
from mbcasadi.plant import Plant

H = 1e-3
SLIDE = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"/>
<geom size=".1" mass="2"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>"""


def static(K, nx):
    return np.zeros((0, 0)), np.zeros((0, nx)), np.zeros((len(K), 0)), K


def pd_loop(bandwidth, delay, period=H):
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    return Loop(A, B, static(np.array([[bandwidth**2, 2 * bandwidth]]), 2), period, delay, ("u",))


def response(bandwidth, delay, w):
    """Return the open loop of a held double integrator under PD, in closed form."""
    z = np.exp(1j * w * H)
    held = H**2 / 2 * (z + 1) / (z - 1) ** 2, H / (z - 1)
    return (bandwidth**2 * held[0] + 2 * bandwidth * held[1]) / z**delay


@pytest.mark.parametrize(("bandwidth", "delay"), [(30.0, 0), (80.0, 1), (50.0, 4)])
def test_margins_are_those_of_the_frequency_response(bandwidth, delay):
    found = loop_margins(pd_loop(bandwidth, delay)).together
    w = np.linspace(1.0, np.pi / H, 2_000_001)[:-1]
    L = response(bandwidth, delay, w)
    crossing = np.argmin(np.abs(np.log(np.abs(L))))
    phase = np.pi + np.angle(L[crossing])
    assert found.phase == pytest.approx(phase, abs=1e-3)
    turns = np.flatnonzero((L.imag[:-1] < 0) & (L.imag[1:] >= 0) & (L.real[1:] < 0))
    if turns.size:
        assert found.strongest == pytest.approx(1 / np.abs(L[turns]).max(), rel=1e-3)
    assert found.weakest == 0.0
    # A control that comes a part of a period later is held as long: to second order a pure delay.
    assert found.delay == pytest.approx(phase / w[crossing], rel=0.01)


@pytest.mark.parametrize("delay", [0, 2])
def test_a_delay_of_whole_periods_is_one_more_delay(delay):
    late = loop_margins(pd_loop(40.0, delay)).together.delay / H
    assert loop_margins(pd_loop(40.0, delay + int(late))) is not None
    assert loop_margins(pd_loop(40.0, delay + int(late) + 1)) is None


@pytest.mark.parametrize("name", [*MODELS[:2], pytest.param(MODELS[2], marks=pytest.mark.long)])
def test_lqr_has_the_margins_of_its_theorem(name):
    """Safonov and Athans 1977: factors from 1/2 to infinity and 60°, in continuous time."""
    linear = at_rest(name)
    found = margins(linear, lqr(linear, *weights(linear), options=LawOptions(period=1e-5)))
    for one in (*found.each, found.together):
        assert one.weakest < 0.51
        assert one.strongest > 20
        assert np.rad2deg(one.phase) > 58
    assert "times the gain" in str(found)


def test_a_law_that_is_designed_for_its_delay_has_the_poles_of_none():
    linear = at_rest("cart_pole")
    Q, R = weights(linear)
    for delay in (1, 5):
        law = lqr(linear, Q, R, delay=delay, options=LawOptions(period=4e-3))
        assert margins(linear, law, delay=delay).delay == delay
        loop = closed_loop(linear, law, 4e-3, delay)
        expected = np.sort(np.abs(lqr_gain(linear, Q, R, period=4e-3).poles))
        found = np.sort(np.abs(np.linalg.eigvals(loop)))[-expected.size :]
        assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ProblemError, match="expected a stable loop"):
        margins(linear, lqr(linear, Q, R, options=LawOptions(period=4e-3)), delay=60)


def closed_loop(linear, law, period, delay):
    """Return the matrix of (x, waiting controls in the actuators, waiting ones in the law)."""
    A, B, _ = hold_matrices(linear.dfdx, linear.dfdu, linear.drift, period)
    nx, function, columns = linear.nx, law.function, []
    z0 = law.controller.z0
    names = law.controller.inputs[-1].components
    own = [i for i, one in enumerate(names) if one.startswith("waiting")]
    n = nx + 2 * delay
    for k in range(n):
        x, actuators, law_queue = np.split(1e-5 * np.eye(n)[k], [nx, nx + delay])
        q, v = linear.state(x)
        z = z0.copy()
        z[own] += law_queue
        out = function(q=q, v=v, z=z)
        u = float(out["u"]) - linear.u[0]
        waiting = np.append(actuators, u)
        memory = np.array(out["z_next"]).ravel()[own] - z0[own]
        columns.append(np.concatenate([A @ x + B[:, 0] * waiting[0], waiting[1:], memory]))
    return np.array(columns).T / 1e-5


@pytest.mark.long
def test_integral_action_leaves_no_error_under_a_constant_load():
    delay = 3
    linear = at_rest("cart_pole")
    Q, R = weights(linear)
    plain, law = (
        lqr(linear, Q, R, delay=delay, integral=integral, options=LawOptions(period=H))
        for integral in (None, {"carriage": 100.0})
    )
    push = np.zeros(linear.system.nv)
    push[0] = 0.5
    offset = rest_of(linear, plain, push, delay)[0]
    assert abs(offset) > 5e-3
    assert abs(rest_of(linear, law, push, delay)[0]) < 1e-3 * abs(offset)
    found = margins(linear, law, delay=delay).together
    assert 0 < found.weakest < 1 < found.strongest


def rest_of(linear, law, push, delay, count=6000):
    """Return the deviation (nv,) in which a pushed nonlinear mechanism comes to rest in MuJoCo."""
    plant = Plant(mb.models.path(linear.system.name), timestep=H, rigid=True)
    plant.reset(linear.q)
    plant.apply_force(push)
    for _ in ticks(law, plant, count, [], delay=delay, first=linear.u):
        pass
    return np.array(linear.system.difference(linear.q, plant.q)).ravel()


@pytest.mark.long
def test_lqg_counts_what_it_measures():
    linear = at_rest("cart_pole")
    nv = linear.system.nv
    Q, R = weights(linear)
    measured = encoders(linear.system, ["carriage", "pole"])
    estimator = kalman(linear, measured, np.r_[np.zeros(nv), np.ones(nv)], 1e-6, period=H)
    K = lqr_gain(linear, Q, R, period=H, integral={"carriage": 100.0}).K
    law = lqg(estimator, K, integral=["carriage"])
    push = np.zeros(nv)
    push[0] = 0.5
    assert abs(rest_of(linear, law, push, 0)[0]) < 1e-5
    found = margins(linear, law)
    assert 0 < found.together.weakest < 1 < found.together.strongest


def test_lqg_counts_nothing_that_it_does_not_measure():
    linear = at_rest("two_mass_spring")
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    far_end = ca.Function("far_end", [q, v], [q[0] + q[1]], ["q", "v"], ["y"])
    blind = kalman(linear, far_end, [0.0, 0.0, 1.0, 1.0], 1e-6, period=H)
    K = lqr_gain(linear, np.ones(4), 1.0, period=H, integral={"x1": 1.0}).K
    refused(ProblemError, "does not determine", lambda: lqg(blind, K, integral=["x1"]))


@pytest.mark.parametrize("delay", [0, 2])
def test_the_margin_of_proposed_gains_is_that_of_a_controller_with_them(delay):
    proposed = propose_gains(H, delay=delay, observer=True)
    assert np.rad2deg(proposed.margin.phase) >= 45 - 1e-9
    assert proposed.margin.strongest >= 2
    system = mb.read_mjcf(SLIDE)
    observer = DisturbanceObserver(proposed.observer.bandwidth)
    law = InverseDynamicsQP(
        system,
        [PostureTask(**gains_from_bandwidth(proposed.bandwidth))],
        observer=observer,
        period=H,
        delay=delay,
        torque_weight=1e-12,
    )
    linear = mb.linearize(system, np.zeros(1), np.zeros(1), np.zeros(1))
    found = margins(linear, law, delay=delay).together
    assert found.phase == pytest.approx(proposed.margin.phase, rel=1e-3)
    assert found.delay == pytest.approx(proposed.margin.delay, rel=1e-3)
    assert found.strongest == pytest.approx(proposed.margin.strongest, rel=1e-3)


def test_more_delay_and_lag_allow_less_gain():
    bandwidths = [propose_gains(H, delay=delay).bandwidth for delay in (0, 1, 3)]
    assert bandwidths == sorted(bandwidths, reverse=True)
    assert propose_gains(H, lag=0.01).bandwidth < propose_gains(H).bandwidth
    assert propose_gains(2 * H).bandwidth == pytest.approx(propose_gains(H).bandwidth / 2, rel=1e-6)


def test_what_cannot_be_is_refused():
    linear = at_rest("cart_pole")
    Q, R = weights(linear)
    with pytest.raises(ProblemError, match="cannot hold"):
        lqr(linear, Q, R, integral={"carriage": 1.0, "pole": 1.0})
    refused(UnknownNameError, "wagon", lambda: lqr(linear, Q, R, integral={"wagon": 1.0}))
    with pytest.raises(ProblemError, match="integral of carriage"):
        lqr(linear, Q, R, integral={"carriage": 0.0})
    refused(ProblemError, "delay", lambda: lqr(linear, Q, R, delay=-1))
    refused(ProblemError, "above 1", lambda: propose_gains(H, gain_margin=0.5))
    refused(ProblemError, "no gains", lambda: propose_gains(H, phase_margin=179.0))
