"""A delay that a model's actuators have of their own is a delay of the law."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.control import DisturbanceObserver, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.errors import ProblemError

PERIOD, LATE = 0.002, 3  # s, ticks
ARM = """<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
<body><joint name="a" axis="0 0 1" range="-1 1"/><geom size=".05" pos=".2 0 0" mass="1"/></body>
<body pos="0 1 0"><joint name="b" axis="0 0 1"/><geom size=".05" pos=".2 0 0" mass="1"/></body>
</worldbody><actuator><motor name="m" joint="a" ctrlrange="-2 2" {first}/>
<motor name="n" joint="b" ctrlrange="-2 2" {second}/></actuator></mujoco>"""
DELAYED = 'delay="0.006" nsample="4"'


def model(first=DELAYED, second=DELAYED):
    return ARM.format(first=first, second=second)


def law(xml, **options):
    return InverseDynamicsQP(
        mb.read_mjcf(xml),
        [PostureTask(kp=400.0)],
        joint_limits=JointLimits(joints=("a",), braking=10.0),
        observer=DisturbanceObserver(5.0),
        period=PERIOD,
        **options,
    )


def test_the_law_adds_the_models_delay_to_its_own():
    assert law(model()).controller.delay == LATE
    assert law(model(), delay=2).controller.delay == LATE + 2
    assert law(model("", "")).controller.delay == 0
    begun = model(*['delay="0.005" nsample="4"'] * 2)
    assert law(begun).controller.delay == LATE


def test_delays_that_differ_are_refused_by_name():
    with pytest.raises(ProblemError, match=r"'m' 6 ms, 'n' 0 ms; expected one delay"):
        law(model(second=""))


def test_delayed_motors_stop_a_joint_before_its_range_and_the_report_names_them():
    controller = law(model())
    goal = controller.reference_at([1.5, 0.0])  # beyond the range of 1 rad
    report = mb.validate(controller, model(), 2.0, reference=goal, fast=True)
    (run,) = report.runs
    peak = float(run.recording.q[:, 0].max())
    assert 0.99 < peak < 1.0 + 1e-3
    assert (
        run.settings["delay"] == "0 ticks and 6 ms of the model's actuators, the law accounts for 3"
    )
    assert not [note for note in run.notes if "accounts for a delay" in note]


def test_a_law_that_does_not_know_the_delay_is_noted():
    system = mb.read_mjcf(model())
    pd = mb.control.laws.computed_torque(
        system, PostureTask(kp=100.0), options=mb.control.laws.LawOptions(period=PERIOD)
    )
    report = mb.validate(pd, model(), 0.1, reference=np.zeros(3 * 2), fast=True)
    assert "accounts for a delay of 0 ticks, the plant has 3" in str(report)


def test_coverage_and_check_name_the_delay(tmp_path):
    from typer.testing import CliRunner

    from mbcasadi.cli.app import app

    file = tmp_path / "arm.xml"
    file.write_text(model())
    shown = CliRunner().invoke(app, ["check", str(file), "--states", "1"]).output
    assert "actuator 'm', 'n': delay of 6 ms" in " ".join(shown.split())
