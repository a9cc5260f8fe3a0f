"""The generated C closes the loop with MuJoCo, at its own rate, and the report says how it went."""

import casadi as ca
import numpy as np
import pytest
from support.validation_problems import (
    CRANK_LIMIT,
    FEET,
    crank_controller,
    signal,
    standing_controller,
    swing,
)

from mbcasadi import models
from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.description import TuningParameter
from mbcasadi.errors import ProblemError, ShapeError, SimulationError, UnknownNameError
from mbcasadi.plant import Plant
from mbcasadi.system import read_mjcf
from mbcasadi.validation import (
    Criteria,
    ReportOptions,
    ScenarioOptions,
    compile_controller,
    validate,
)

FOUR_BAR = models.path("four_bar")
QUADRUPED = models.path("quadruped")
SAME_ARITHMETIC = 1e-12  # generated C against CasADi's virtual machine, values of order 1
WEIGHT_SHARE = 0.01  # the standing robot has come to rest to this share of its weight


def crank_run(**options):
    settings: dict = {"duration": 0.5, "reference": swing} | options
    controller = settings.pop("controller", crank_controller())
    return validate(controller, FOUR_BAR, settings.pop("duration"), **settings).runs[0]


def test_the_c_computes_what_the_controller_says_from_what_the_plant_measured():
    run = crank_run()
    record = run.recording
    expected = run.controller.function(record.q.T, record.v.T, record.ref.T)
    assert np.ptp(record.u) > 0.1
    np.testing.assert_allclose(record.u, np.array(expected).T, atol=SAME_ARITHMETIC)


def test_the_controller_runs_at_its_period_and_the_plant_at_its_step():
    run = crank_run(controller=crank_controller(period=5e-3), duration=0.1)
    record = run.recording
    assert record.ticks == 20
    np.testing.assert_allclose(np.diff(record.t), 5e-3, rtol=1e-9)
    # The control is held in between: re-simulated step by step from the recorded controls.
    plant = Plant(FOUR_BAR)
    plant.reset()
    for k in range(record.ticks):
        np.testing.assert_allclose(plant.q, record.q[k], atol=SAME_ARITHMETIC)
        plant.step(record.u_applied[k], 10)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_delay_moves_the_control_by_whole_ticks(delay):
    record = crank_run(delay=delay, duration=0.1).recording
    assert np.ptp(record.u) > 0.1
    np.testing.assert_array_equal(record.u_applied[delay:], record.u[: record.ticks - delay])
    assert (record.u_applied[:delay] == record.u[0]).all()


def test_a_push_from_outside_moves_the_plant_and_is_no_disagreement_of_our_dynamics():
    def push(t):
        return [3.0, 0.0, 0.0] if 0.1 <= t < 0.15 else [0.0, 0.0, 0.0]

    alone, pushed = crank_run(duration=0.3), crank_run(duration=0.3, disturbance=push)
    np.testing.assert_array_equal(pushed.recording.disturbance[100:150, 0], 3.0)
    np.testing.assert_array_equal(pushed.recording.disturbance[150:], 0.0)
    assert pushed.settings["disturbance"] == "up to 3 N m on crank, from 0.1 s to 0.15 s"
    assert alone.settings["disturbance"] == "none"
    before, after = pushed.recording.q[:100], pushed.recording.q[150:]
    np.testing.assert_array_equal(before, alone.recording.q[:100])
    assert np.abs(after - alone.recording.q[150:]).max() > 0.01
    during = slice(110, 150)  # the soft pin takes some of its 4 ms to follow a jump
    ours, theirs = pushed.comparison.force[during], pushed.comparison.mujoco_force[during]
    softness = 1e-3  # of the pin, as a share of the force
    np.testing.assert_allclose(ours, theirs, atol=softness * np.abs(theirs).max())


def test_the_mask_follows_its_schedule_and_the_state_is_carried_from_tick_to_tick():
    q0 = Plant(QUADRUPED).keyframe("stand")

    def lift(t):
        return [1.0, 1.0, 1.0, 1.0] if t < 0.1 else [0.0, 1.0, 1.0, 1.0]

    run = validate(
        standing_controller(q0),
        QUADRUPED,
        0.2,
        scenario=ScenarioOptions(keyframe="stand", mask=lift),
    ).runs[0]
    record = run.recording
    assert record.mask[0].tolist() == lift(0.0)
    assert record.mask[-1].tolist() == lift(0.2)
    expected = np.concatenate([[0.0], np.cumsum(record.mask.sum(axis=1))[:-1]])
    np.testing.assert_allclose(record.z[:, 0], expected)
    # This controller reports "infeasible" while its first foot is up: half of the ticks.
    assert run.metric("status.solved") == 0.5
    assert run.statuses["infeasible, safe output"] == 50
    assert not run.passed


def test_a_standing_robot_is_carried_by_its_feet():
    plant = Plant(QUADRUPED)
    run = validate(
        standing_controller(plant.keyframe("stand")),
        QUADRUPED,
        1.5,
        scenario=ScenarioOptions(keyframe="stand"),
    ).runs[0]
    record = run.recording
    weight = 9.81 * plant.model.body_mass.sum()
    assert record.contact_names == FEET
    assert record.contact_normal[-1].sum() == pytest.approx(weight, rel=WEIGHT_SHARE)
    assert record.contact_force[-1].sum(axis=0)[2] == pytest.approx(weight, rel=WEIGHT_SHARE)
    assert 0 < run.metric("cone.plant") < 1
    assert run.metric("contact.slip") < 0.02
    assert run.passed


def test_the_margin_of_friction_is_that_of_the_plant():
    def standing(friction):
        return validate(
            standing_controller(Plant(QUADRUPED).keyframe("stand")),
            QUADRUPED,
            0.5,
            perturb={"friction": friction},
            fast=True,
            scenario=ScenarioOptions(keyframe="stand"),
        ).runs[0]

    usual, rough, ice = standing(0.0), standing(0.5), standing(-0.97)
    used = 1 - usual.metric("cone.plant")
    assert 1 - rough.metric("cone.plant") == pytest.approx(used / 1.5, rel=1e-3)
    assert ice.metric("cone.plant") == pytest.approx(0.0, abs=1e-9)  # it slides
    assert ice.metric("contact.slip_share") > 2 * usual.metric("contact.slip_share")
    assert rough.passed


def test_a_run_is_the_same_again_and_another_seed_is_another_run():
    first, again, other = (
        crank_run(
            perturb={"mass": 0.1}, scenario=ScenarioOptions(seed=seed), duration=0.1
        ).recording.q
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6


def test_saturation_is_counted_and_stays_within_the_limits():
    def fast(t):
        return [2 * (1 - np.cos(2 * np.pi * t)), 4 * np.pi * np.sin(2 * np.pi * t)]

    run = crank_run(reference=fast, duration=1.0)
    at_limit = np.abs(np.abs(run.recording.u) - CRANK_LIMIT) < 1e-9
    assert 0.05 < at_limit.mean() < 0.95
    assert run.metric("torque.saturated") == pytest.approx(at_limit.mean(), abs=0.02)
    assert run.metric("torque.excess") == 0
    assert run.metric("tracking.rms_share_free") < run.metric("tracking.rms_share")


def test_a_controller_that_breaks_its_limits_is_found_out():
    run = crank_run(controller=crank_controller(limit=2.0), reference=[1.0, 0.0], duration=0.3)
    assert run.metric("torque.excess") == pytest.approx(0.5)
    assert not run.passed
    assert [v.metric for v in run.verdicts if not v.passed] == ["torque.excess"]


def test_a_plant_that_diverges_ends_the_run_and_fails_it():
    q, v, ref = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("ref", 2)
    wild = ca.Function("wild", [q, v, ref], [1e12 * v[0] + 1e6], ["q", "v", "ref"], ["u"])
    unlimited = FOUR_BAR.read_text().replace('ctrlrange="-1.5 1.5"', "")
    free = {"u_min": np.array([-np.inf]), "u_max": np.array([np.inf])}
    controller = crank_controller(function=wild, **free)
    run = validate(controller, unlimited, 1.0, reference=swing, criteria=Criteria({})).runs[0]
    assert not run.passed
    assert "diverged" in run.notes[0]
    assert run.recording.ticks < 1000
    huge = ca.Function("huge", [q, v, ref], [1e300 + v[0]], ["q", "v", "ref"], ["u"])
    with pytest.raises(SimulationError, match="the plant diverged at t = 0 s"):
        validate(crank_controller(function=huge, **free), unlimited, 0.1, reference=swing)


def test_arithmetic_that_breaks_down_is_status_4_also_of_a_law_without_a_status():
    q, v, ref = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("ref", 2)
    u = ca.sqrt(0.3 - q[0]) - 0.1 * v[0]  # NaN beyond 0.3 rad
    broken = ca.Function("broken", [q, v, ref], [u], ["q", "v", "ref"], ["u"])
    run = crank_run(controller=crank_controller(function=broken), duration=0.5)
    breaks = run.recording.q[:, 0] > 0.3
    assert breaks.any()
    np.testing.assert_array_equal(run.recording.status, 4 * breaks)
    np.testing.assert_array_equal(run.recording.u[breaks], 0)
    assert run.recording.ticks == 500  # the plant went on


def test_c_that_is_compiled_once_serves_many_runs():
    with compile_controller(crank_controller()) as law:
        first, second = (crank_run(controller=law, duration=0.1, delay=d) for d in (0, 2))
    assert first.verdicts[0].passed
    assert np.abs(first.recording.q - second.recording.q).max() > 1e-6
    assert first.times is not None


def test_progress_goes_one_way():
    said: list[tuple[str, float]] = []
    crank_run(
        duration=0.2, report=ReportOptions(progress=lambda text, share: said.append((text, share)))
    )
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert 0 <= min(shares) <= max(shares) <= 1
    assert {"simulating", "timing ticks"} <= {text for text, _ in said}


def test_a_criterion_may_name_a_task_or_a_component():
    run = crank_run(criteria=Criteria({"tracking.rms:crank": 1.0}), duration=0.1)
    assert run.metric("tracking.rms:crank") == run.metric("tracking.rms") > 0
    with pytest.raises(UnknownNameError, match="unknown component 'leg'; valid: 'crank"):
        crank_run(criteria=Criteria({"tracking.rms:leg": 1.0}), duration=0.05)
    with pytest.raises(UnknownNameError, match="may name a task"):
        crank_run(criteria=Criteria({"torque.excess:crank": 0.0}), duration=0.05)


def test_an_unknown_criterion_lists_the_valid_ones():
    with pytest.raises(UnknownNameError, match=r"tracking\.speed.*tracking\.rms"):
        crank_run(criteria=Criteria({"tracking.speed": 1.0}))


def test_a_criterion_without_a_measurement_fails():
    run = crank_run(criteria=Criteria({"cone.plant": 0.0}), duration=0.05)
    assert not run.passed
    assert np.isnan(run.verdicts[1].value)


def test_a_period_that_is_no_multiple_of_the_time_step_is_refused():
    with pytest.raises(ProblemError, match=r"0.0012 s is not a multiple .* 0.0005 s"):
        crank_run(
            controller=crank_controller(period=1.2e-3), scenario=ScenarioOptions(timestep=5e-4)
        )


def test_a_step_of_the_model_that_divides_no_period_becomes_one_that_does():
    run = crank_run(controller=crank_controller(period=1.2e-3), duration=0.12)
    assert run.settings["plant's time step"] == "0.4 ms (3 in a period)"
    assert any("by 0.4 ms in place of the model's 0.5 ms" in note for note in run.notes)
    again = crank_run(
        controller=crank_controller(period=1.2e-3),
        duration=0.12,
        scenario=ScenarioOptions(timestep=4e-4),
    )
    np.testing.assert_allclose(run.recording.q, again.recording.q, atol=SAME_ARITHMETIC)


def test_without_a_reference_a_law_that_knows_rest_holds_the_start():
    law = InverseDynamicsQP(read_mjcf(FOUR_BAR), [PostureTask(joints=["crank"])])
    run = validate(law, FOUR_BAR, 0.1, q0=[0.5, 0.0, 0.0]).runs[0]
    assert "No reference was given: the run holds the start, at rest." in run.notes
    target = run.recording.monitor["target"][:, 0]
    assert target[0] == pytest.approx(run.recording.q[0, 0], abs=SAME_ARITHMETIC)  # closed
    assert np.ptp(target) == 0
    assert run.passed


def test_a_controller_of_another_model_is_refused():
    with pytest.raises(ProblemError, match=r"takes q of size 3, but the plant has 19"):
        validate(crank_controller(), QUADRUPED, 0.1, reference=swing)


def test_a_missing_or_misshapen_reference_is_refused():
    with pytest.raises(ProblemError, match="reference of size 2"):
        crank_run(reference=None)
    with pytest.raises(ShapeError, match=r"reference has shape \(3,\), expected \(2,\)"):
        crank_run(reference=[0.0, 0.0, 0.0])


def test_only_a_controller_can_be_validated():
    with pytest.raises(ProblemError, match="controller is 5; expected a Controller or"):
        validate(5, FOUR_BAR, 1.0)  # type: ignore[arg-type]
    x = ca.SX.sym("x")
    odd = ca.Function("odd", [x], [x], ["wind"], ["u"])
    with pytest.raises(ProblemError, match="wind"):
        validate(crank_controller(function=odd), FOUR_BAR, 1.0)


def test_validation_leaves_nothing_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    crank_run(duration=0.05)
    assert list(tmp_path.iterdir()) == []


def test_a_loop_that_is_switched_is_compared_while_it_holds_and_while_it_does_not():
    def pinned(t):
        return {"pin": not 0.1 <= t < 0.2}

    run = crank_run(
        duration=0.2, scenario=ScenarioOptions(switch=pinned), report=ReportOptions(softness=True)
    )
    record, comparison = run.recording, run.comparison
    assert record.equality_active[:, 0].tolist() == [1.0] * 100 + [0.0] * 100
    held, free = slice(50, 100), slice(100, 200)  # the soft pin takes some of its 4 ms to load
    assert np.abs(record.equality_force[held]).max() > 0.1
    np.testing.assert_array_equal(comparison.force[free], 0.0)
    np.testing.assert_array_equal(comparison.drift[free], 0.0)
    softness = 1e-3  # of the pin, as a share of force and acceleration
    assert comparison.force_error[held].max() < softness
    assert comparison.acceleration_error[held].max() < softness
    assert comparison.acceleration_error[free].max() < SAME_ARITHMETIC * 1e3
    assert run.notes == ("Softness was not swept: the plant's constraints were switched.",)


def test_tuning_has_its_defaults_or_follows_a_schedule_and_flags_are_recorded():
    q, v, tuning = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("tuning")
    u = -tuning * q[0]
    flags = ca.if_else(ca.fabs(q[0]) > 0.01, 2, 0)
    function = ca.Function(
        "tuned", [q, v, tuning], [u, flags], ["q", "v", "tuning"], ["u", "flags"]
    )
    law = crank_controller(
        function=function,
        inputs=(signal("q", 3), signal("v", 3), signal("tuning", 1)),
        outputs=(signal("u", 1, "N m"), signal("flags", 1)),
        monitor=None,
        monitors=(),
        tuning=(TuningParameter("kp", 5.0),),
    )
    start = {"q0": [0.3, 0.0, 0.0], "reference": None, "duration": 0.1, "controller": law}
    default = crank_run(**start).recording
    assert (default.tuning == 5.0).all()
    np.testing.assert_allclose(default.u, -5.0 * default.q[:, :1], atol=SAME_ARITHMETIC)
    np.testing.assert_array_equal(default.flags, np.where(np.abs(default.q[:, 0]) > 0.01, 2, 0))
    assert default.flags.any()
    scheduled = crank_run(**start, scenario=ScenarioOptions(tuning=lambda t: [20.0 * t])).recording
    np.testing.assert_allclose(scheduled.tuning[:, 0], 20.0 * scheduled.t)
    np.testing.assert_allclose(
        scheduled.u, -scheduled.tuning * scheduled.q[:, :1], atol=SAME_ARITHMETIC
    )
    with pytest.raises(ShapeError, match=r"tuning has shape \(2,\), expected \(1,\)"):
        crank_run(**start, scenario=ScenarioOptions(tuning=[1.0, 2.0]))
