"""Two rates: a slow outer law, delayed, connected with the inner law by a planner."""

import pickle
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import pytest
from support.bare_node import remove_compiler

import mbcasadi as mb
from mbcasadi import errors as err
from mbcasadi.description import Controller, Signal
from mbcasadi.validation import ReportOptions, ScenarioOptions, Trial, outer_law
from mbcasadi.validation.campaigns.kit import sampled_trial
from mbcasadi.validation.campaigns.shipping import to_bytes
from mbcasadi.validation.trial_report import run_trial

EVERY = 3
SLIDE = '<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size=".1" \
mass="1"/></body></worldbody><actuator><motor joint="x" ctrlrange="-9 9"/></actuator></mujoco>'


@dataclass(frozen=True)
class Planner:
    function: ca.Function
    z0: np.ndarray
    u0: np.ndarray
    every: int = EVERY
    delay: int = 1


def signal(name, size=1):
    return Signal(name, tuple(f"{name}{i}" for i in range(size)), ("",) * size)


def law(name, inputs, outputs, period):
    """Return a controller of scalars with a state that counts."""
    function = ca.Function(
        name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
    )
    return Controller(
        name=name,
        function=function,
        inputs=tuple(signal(key, value.numel()) for key, value in inputs.items()),
        outputs=tuple(signal(key) for key in outputs),
        u_min=np.array([-9.0]),
        u_max=np.array([9.0]),
        z0=np.zeros(1),
        period=period,
    )


def counting():
    """Return an outer law whose control is 100 times its count plus its input."""
    x, z = ca.SX.sym("measured"), ca.SX.sym("z")
    return law(
        "counting",
        {"measured": x, "z": z},
        {"u": 100 * z + x, "z_next": z + 1, "status": ca.SX(0)},
        1,
    )


def planner(delay=1, names=("measured",)):
    """Return a planner that passes q to the outer law, and its control on as reference."""
    names_in = ("q", "v", "command", "u", "t", "z")
    inputs = [ca.SX.sym(name) for name in names_in]
    q, _, command, u, _, z = inputs
    outputs = [ca.vertcat(u, command, z), ca.SX(1), *(q for _ in names), z + 1]
    outs = ["ref", "mask", *(f"outer_{name}" for name in names), "z_next"]
    function = ca.Function("planner", inputs, outputs, list(names_in), outs)
    return Planner(function, np.zeros(1), np.array([-7.0]), delay=delay)


@pytest.mark.parametrize("delay", [0, 1, 2])
def test_controls_of_the_outer_law_act_in_their_ticks(delay):
    with outer_law(counting(), planner(delay), lambda t: [2 * t]) as outer:
        for _ in range(2):
            outer.reset()
            ticks = [
                outer({"t": np.array([k]), "q": np.array([k]), "v": np.zeros(1)})["ref"]
                for k in range(4 * EVERY)
            ]
            values = np.array(ticks)
            controls = [100 * j + EVERY * j for j in range(4)]  # of the outer ticks, at q = 3 j
            if delay:
                line = np.repeat([-7.0] * delay + controls[: 4 - delay], EVERY)
            else:  # computed while its tick lasts, so from the next tick of the inner law on
                line = np.r_[-7.0, np.repeat(controls, EVERY)[:-1]]
            np.testing.assert_array_equal(values[:, 0], line)
            np.testing.assert_array_equal(values[:, 1], 2 * np.arange(4 * EVERY))
            np.testing.assert_array_equal(values[:, 2], np.arange(4 * EVERY))
            np.testing.assert_array_equal(np.ravel(outer.record["u"]), controls)
            assert len(outer.times().seconds) == 4


def test_a_compiled_outer_law_serves_another_planner():
    measured = {"t": np.zeros(1), "q": np.full(1, 5.0), "v": np.zeros(1)}
    with (
        outer_law(counting(), planner(0), [0.0]) as first,
        outer_law(first.law, planner(0), [3.0]) as other,
    ):
        assert other.law is first.law
        values = [other(measured)["ref"] for _ in range(EVERY + 1)]
        np.testing.assert_array_equal(np.array(values)[:, 1], 3.0)
        np.testing.assert_array_equal(np.ravel(other.record["u"]), [5.0, 105.0])
        assert not first.record


def test_a_planner_gets_the_disturbance_that_the_inner_law_has_learned():
    """That of the tick before; zero at the first."""
    known = planner()
    inputs = [*known.function.sx_in(), ca.SX.sym("disturbance", 2)]
    outputs = known.function.call(inputs[:-1])
    outputs[0] = inputs[-1]
    names = [*known.function.name_in(), "disturbance"], known.function.name_out()
    known = replace(known, function=ca.Function("planner", inputs, outputs, *names))
    measured = {"t": np.zeros(1), "q": np.zeros(1), "v": np.zeros(1)}
    with outer_law(counting(), known, [0.0]) as outer:
        assert outer(measured)["ref"].tolist() == [0, 0]
        assert outer(measured, {"disturbance": np.array([3.0, 4.0])})["ref"].tolist() == [3, 4]


def test_a_planner_that_lacks_an_output_is_refused():
    with (
        pytest.raises(err.ProblemError, match="no output for measured of 'counting'"),
        outer_law(counting(), planner(names=("other",)), [0.0]),
    ):
        pass


def following():
    """Return an inner law that pulls a mass to its reference."""
    names = ("q", "v", "ref", "mask", "z")
    q, v, ref, mask, z = (ca.SX.sym(n, 3 if n == "ref" else 1) for n in names)
    given = dict(zip(names, (q, v, ref, mask, z), strict=True))
    return law("following", given, {"u": 50 * (ref[1] - q) - 10 * v, "z_next": z}, 0.01)


def test_validate_follows_the_outer_law():
    with outer_law(counting(), planner(), [0.1]) as outer:
        report = mb.validate(
            following(), SLIDE, 2.0, scenario=ScenarioOptions(timestep=0.01, outer=outer)
        )
        found = report.runs[0].recording
        assert abs(found.q[0, 0]) < 1e-12
        assert abs(found.q[-1, 0] - 0.1) < 1e-3
        assert len(outer.record["u"]) == -(-found.ticks // EVERY)
        with pytest.raises(err.ProblemError, match="not both"):
            mb.validate(
                following(),
                SLIDE,
                1.0,
                reference=[0, 0, 0],
                scenario=ScenarioOptions(timestep=0.01, outer=outer),
            )


def test_repetitions_of_a_run_leave_the_outer_laws_record_of_the_run_itself():
    with outer_law(counting(), planner(), [0.1]) as outer:
        scenario = ScenarioOptions(timestep=0.01, outer=outer)
        options = {"scenario": scenario, "perturb": {"mass": 0.9}}
        alone = mb.validate(following(), SLIDE, 0.3, **options).runs[0]
        inputs = np.ravel(outer.record["measured"])
        again = mb.validate(
            following(), SLIDE, 0.3, **options, report=ReportOptions(what_if=True)
        ).runs[0]
        np.testing.assert_array_equal(np.ravel(outer.record["measured"]), inputs)
        nominal, heavy = again.what_if.rows
        assert nominal.effort != heavy.effort
        assert heavy.effort == pytest.approx(np.sqrt(np.mean(alone.recording.u**2)))


def test_the_report_has_the_outer_laws_statuses_and_times_over_its_own_period():
    x, z = ca.SX.sym("measured"), ca.SX.sym("z")
    status = ca.if_else(ca.logic_and(z >= 2, z < 5), 2, 0)  # of its ticks 2, 3 and 4
    outputs = {"u": x, "z_next": z + 1, "status": status}
    failing = law("failing", {"measured": x, "z": z}, outputs, 1)
    with outer_law(failing, planner(), [0.1]) as outer:
        report = mb.validate(
            following(), SLIDE, 0.3, scenario=ScenarioOptions(timestep=0.01, outer=outer)
        )
    (run,) = report.runs
    assert run.outer.period == pytest.approx(EVERY * 0.01)
    solved, infeasible = run.outer.status_rows
    assert (solved.ticks, infeasible.ticks, infeasible.longest) == (7, 3, 3)
    assert infeasible.first == pytest.approx(2 * EVERY * 0.01)
    assert run.metric("outer.safe_output") == pytest.approx(0.3)
    assert run.metric("outer.longest_failure") == 3
    share = run.outer.times.p99 / run.outer.period
    assert run.metric("outer.share") == pytest.approx(share)
    assert run.metric("status.safe_output") == 0  # of the inner law
    page = report.to_html()
    assert "failing: infeasible, safe output" in page
    assert "failing: whole tick" in page
    assert "failing: infeasible, safe output: 3 ticks, the first at 0.06 s" in str(report)
    assert report.to_dict()["runs"][0]["outer"]["statuses"][1]["ticks"] == 3


def test_without_timing_a_run_has_statuses_and_no_times():
    with outer_law(counting(), planner(), [0.1]) as outer:
        report = mb.validate(
            following(), SLIDE, 0.1, report=ReportOptions(timing=False),
            scenario=ScenarioOptions(timestep=0.01, outer=outer),
        )  # fmt: skip
    (run,) = report.runs
    assert run.times is None
    assert run.outer.times is None
    assert "outer.share" not in {metric.name for metric in run.metrics}
    assert report.to_dict()["runs"][0]["outer"]["statuses"][0]["ticks"] > 0
    assert "counting: whole tick" not in report.to_html()


BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body pos="0 0 .1">
<joint name="z" type="slide" axis="0 0 1"/><geom size=".1" mass="2"/>
<site name="foot" pos="0 0 -.1"/></body></worldbody>
<actuator><motor joint="z" ctrlrange="-9 9"/></actuator></mujoco>"""


def test_a_planner_with_measured_forces_gets_those_of_the_inner_laws_contacts(monkeypatch):
    """The mass rests on the floor: the reference, that the planner makes of them, is its weight."""
    names_in = ("q", "v", "f_measured", "command", "u", "t", "z")
    inputs = [ca.SX.sym(name, 3 if name == "f_measured" else 1) for name in names_in]
    outputs = [inputs[2], ca.SX(1), inputs[0], inputs[-1]]
    outs = ["ref", "mask", "outer_measured", "z_next"]
    function = ca.Function("planner", inputs, outputs, list(names_in), outs)
    names = ("q", "v", "ref", "mask", "z")
    given = {name: ca.SX.sym(name, 3 if name == "ref" else 1) for name in names}
    inner = law("resting", given, {"u": 0 * given["q"], "z_next": given["z"]}, 0.01)
    inner = replace(inner, contacts=(mb.Contact("foot"),))
    touching = Planner(function, np.zeros(1), np.zeros(1), delay=0)
    with outer_law(counting(), touching, [0.0]) as outer:
        assert outer.measures_forces
        above = ScenarioOptions(outer=outer)
        recording = mb.validate(inner, BALL, 1.0, scenario=above).runs[0].recording
        sent = to_bytes(sampled_trial(Trial(1.0, scenario=above), 0.01), libraries=True)
    with monkeypatch.context() as bare_node:
        remove_compiler(bare_node)
        received = pickle.loads(sent)
    again = run_trial(inner, BALL, received).runs[0].recording
    np.testing.assert_array_equal(again.q, recording.q)  # as a worker of a campaign gets it
    np.testing.assert_allclose(recording.ref[1:], recording.f_measured[1:], atol=1e-9)
    np.testing.assert_allclose(recording.ref[-1], [2 * 9.81, 0, 0], atol=0.1)
