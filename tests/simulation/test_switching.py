"""Events, changes of topology, the jump of an inelastic closure, controllers in the loop."""

import casadi as ca
import numpy as np
import pytest
from simulation_mechanisms import GRAVITY, particle
from support.corpora import ROOT

import mbcasadi as mb
from mbcasadi.errors import MotionError, ProblemError
from mbcasadi.simulation import ControlLoop, InitialConditions, SampledLaw

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
TIME_TOL = 1e-10


def two_carts(masses=(2.0, 3.0)) -> mb.System:
    """Two masses on a line; the row couples them, when it is active."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = ca.dot(ca.DM(masses), v**2) / 2
    return mb.from_lagrangian(q, v, kinetic=kinetic, phi=q[1] - q[0]).with_mask([0])


def test_carts_couple_when_they_meet_and_lose_the_energy_of_an_inelastic_impact():
    meet = mb.Event("couple", lambda _, q, __: q[1] - q[0], mask=[1])
    trajectory = mb.simulate(two_carts(), [0, 1], [4.0, 0], 1.0, events=[meet], **TIGHT)
    (event,) = trajectory.events
    assert event.name == "couple"
    assert abs(event.time - 0.25) < TIME_TOL
    common = 2.0 * 4.0 / 5.0
    np.testing.assert_allclose(event.v_after, [common, common], rtol=1e-12)
    np.testing.assert_allclose(event.impulse, [2 * (common - 4), 3 * common], rtol=1e-12)
    lost = 2.0 * 3.0 / 5.0 / 2 * 4.0**2
    np.testing.assert_allclose(event.energy_loss, lost, rtol=1e-12)
    np.testing.assert_allclose(event.energy_before - event.energy_after, lost, rtol=1e-12)
    np.testing.assert_allclose(trajectory.q[-1], 1 + common * 0.75, atol=1e-9)
    assert trajectory.rank[0] == 0
    assert trajectory.rank[-1] == 1
    twice = trajectory.t == event.time  # before and after
    np.testing.assert_allclose(trajectory.v[twice], [[4, 0], [common, common]], atol=1e-9)
    assert trajectory.mask[twice].ravel().tolist() == [0, 1]


def test_a_switch_opens_and_closes_rows_at_its_time():
    apart = mb.Switch("open", 0.5, [0])
    system = two_carts().with_mask([1])
    trajectory = mb.simulate(
        system, [0, 0], [1.0, 1.0], 2.0, events=[apart], force=lambda *_: [6.0, 0], **TIGHT
    )
    assert trajectory.events[0].energy_loss == 0.0
    # together with 6/5 m/s², then the first alone with 6/2
    v = 1 + 6 / 5 * 0.5
    np.testing.assert_allclose(trajectory.v[-1], [v + 3 * 1.5, v], atol=1e-9)
    together = trajectory.t < 0.5
    np.testing.assert_allclose(trajectory.f_c[together], [[-3.6, 3.6]] * together.sum(), atol=1e-9)


def test_rows_that_are_open_do_not_close_unless_they_are_held_as_they_are():
    close = mb.Switch("close", 0.1, [1])
    with pytest.raises(MotionError, match=r"would close row 0 \(phi0\), which is open by 0\.6"):
        mb.simulate(two_carts(), [0, 1], [4.0, 0], 1.0, events=[close])
    hold = mb.Switch("close", 0.1, [1], hold=True)
    trajectory = mb.simulate(two_carts(), [0, 1], [4.0, 0], 1.0, events=[hold], **TIGHT)
    assert abs(trajectory.events[0].gap - 0.6) < 1e-12
    after = trajectory.mask[:, 0] == 1
    np.testing.assert_allclose(np.diff(trajectory.q[after], axis=1), 0.6, atol=1e-12)
    assert trajectory.drift.max() < 1e-12


def test_the_jump_is_the_admissible_velocity_nearest_in_the_metric_of_the_masses():
    """On random closures of a loop: `Z^T M (v+ - v) = 0`, `A v+ = 0`, energy by Pythagoras."""
    system = mb.read_mjcf(ROOT / "mujoco_models" / "four_bar.xml").with_mask()
    rng = np.random.default_rng(1)
    q0 = mb.assemble(system, system.tree.q0)
    A, M = system.constraint_jacobian(q0).full(), system.mass_matrix(q0).full()
    Z = np.linalg.svd(A)[2][2:].T  # rank 2 of 3
    for v0 in rng.standard_normal((3, 3)):
        catch = mb.Switch("catch", 0.0, np.ones(3))
        start_open = InitialConditions(mask=np.zeros(3))
        run = mb.simulate(system, q0, v0, 1e-3, events=[catch], initial=start_open)
        (event,) = run.events
        np.testing.assert_allclose(A @ event.v_after, 0, atol=1e-12)
        np.testing.assert_allclose(Z.T @ M @ (event.v_after - v0), 0, atol=1e-12)
        jump = event.v_after - v0
        np.testing.assert_allclose(event.impulse, M @ jump, atol=1e-12)
        np.testing.assert_allclose(event.energy_loss, jump @ M @ jump / 2, rtol=1e-9)
        assert event.energy_loss > 1e-3


def test_events_are_found_at_their_time_in_their_direction_and_may_stop_the_run():
    system = particle(1, heavy=True)
    height = ca.SX.sym("q", 1)
    passed = ca.Function("height", [ca.SX.sym("t"), height, ca.SX.sym("v", 1)], [height - 0.5])
    events = [
        mb.Event("rise", passed, direction=1),
        mb.Event("fall", passed, direction=-1),
        mb.Event("ground", lambda _, q, __: q[0], direction=-1, stop=True),
    ]
    trajectory = mb.simulate(system, [0.0], [4.0], 5.0, events=events, **TIGHT)
    root = np.sqrt(16 - 2 * GRAVITY * 0.5)
    expected = [("rise", (4 - root) / GRAVITY), ("fall", (4 + root) / GRAVITY)]
    expected.append(("ground", 8 / GRAVITY))
    for event, (name, time) in zip(trajectory.events, expected, strict=True):
        assert event.name == name
        assert abs(event.time - time) < TIME_TOL
    assert trajectory.stopped == "ground"
    assert abs(trajectory.t[-1] - 8 / GRAVITY) < TIME_TOL


def test_a_sampled_law_is_held_between_its_ticks():
    """`x⁺ = x + v T + u T²/2`, `v⁺ = v + u T` at every tick."""
    q, v = ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=np.ones((1, 1)))
    T = 0.1
    law = SampledLaw(lambda _, q, v: -3 * q - 2 * v, T)
    trajectory = mb.simulate(system, [1.0], [0.0], 2.0, controller=law, times=np.arange(21) * T)
    x = np.array([1.0, 0.0])
    for k, t in enumerate(np.arange(21) * T):
        now = trajectory.t == trajectory.t[np.argmin(np.abs(trajectory.t - t))]
        np.testing.assert_allclose(
            [trajectory.q[now][0, 0], trajectory.v[now][0, 0]], x, atol=1e-10, err_msg=str(k)
        )
        u = -3 * x[0] - 2 * x[1]
        x = x + np.array([T * x[1] + u * T**2 / 2, u * T])


def controller(period: float, size: int = 1) -> mb.Controller:
    q, v, z = ca.SX.sym("q", size), ca.SX.sym("v", size), ca.SX.sym("z", 1)
    ref = ca.SX.sym("ref", 1)
    u = 20 * (ref - q) - 6 * v + 5 * z
    outputs, names = [u, z + period * (ref - q)], ["q", "v", "ref", "z"]
    law = ca.Function("law", [q, v, ref, z], outputs, names, ["u", "z_next"])
    limit = np.full(size, np.inf)
    return mb.Controller("law", law, (), (), -limit, limit, np.zeros(1), period)


def test_a_controller_with_a_state_and_a_reference_reaches_it():
    q, v = ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    system = mb.from_lagrangian(q, v, kinetic=v**2 / 2, potential=3 * q, B=np.ones((1, 1)))
    loop = ControlLoop(controller(0.02), reference=lambda _: [0.7])
    trajectory = mb.simulate(system, [0.0], [0.0], 25.0, rtol=1e-7, controller=loop)
    np.testing.assert_allclose(trajectory.q[-1], 0.7, atol=1e-3)  # the integral takes the weight
    np.testing.assert_allclose(trajectory.u[-1], 3.0, atol=1e-2)
    with pytest.raises(ProblemError, match="reference="):
        mb.simulate(system, [0.0], [0.0], 1.0, controller=controller(0.02))
    with pytest.raises(ProblemError, match="made for other sizes"):
        mb.simulate(particle(2), [0, 0], [0, 0], 1.0, controller=loop)
    with pytest.raises(ProblemError, match="controller is a function; expected a Controller"):
        mb.simulate(system, [0.0], [0.0], 1.0, controller=lambda *_: 0)


FILTERED = """<mujoco><option gravity="0 0 0"/><worldbody><body name="cart">
  <joint name="slide" type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></worldbody>
  <actuator><general joint="slide" dyntype="filter" dynprm="0.3" gainprm="5"/></actuator>
  </mujoco>"""


def test_activations_are_integrated_with_the_motion():
    system = mb.read_mjcf(FILTERED)
    constant = SampledLaw(lambda *_: [1.0], 10.0)
    initial = InitialConditions(act=[0.2])
    run = mb.simulate(system, [0.0], [0.0], 2.0, controller=constant, initial=initial, **TIGHT)
    decay = np.exp(-run.t / 0.3)
    np.testing.assert_allclose(run.act[:, 0], 1 - 0.8 * decay, atol=1e-9)
    np.testing.assert_allclose(run.a[:, 0], 2.5 * (1 - 0.8 * decay), atol=1e-8)
    np.testing.assert_allclose(run.v[:, 0], 2.5 * (run.t - 0.24 * (1 - decay)), atol=1e-9)
