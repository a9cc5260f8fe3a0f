"""Supervisions that do not fit a controller are refused by name."""

import casadi as ca
import numpy as np
import pytest
from codegen_problems import planar_arm, saturated_controller

from mbcasadi import codegen
from mbcasadi.codegen import InputLimits, Supervision
from mbcasadi.errors import ExportError, ProblemError, ShapeError, UnknownNameError


def export(folder, **options):
    return codegen.export_c(
        saturated_controller(), folder / "c", supervision=Supervision(**options)
    )


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"inputs": {"qq": InputLimits()}},
            UnknownNameError,
            "unknown input 'qq'; valid: 'q', 'v'",
        ),
        ({"inputs": {"z": InputLimits()}}, UnknownNameError, "unknown input 'z'"),
        ({"inputs": {"q": 3.0}}, ProblemError, r"inputs\['q'\] is 3.0; expected a InputLimits"),
        ({"inputs": {"q": InputLimits(lower=[1.0])}}, ShapeError, r"\(1,\), expected \(2,\)"),
        (
            {"inputs": {"q": InputLimits(jump={"ankle": 1.0})}},
            UnknownNameError,
            "unknown component of q 'ankle'; valid: 'hip', 'knee'",
        ),
        ({"inputs": {"q": InputLimits(2.0, 1.0)}}, ProblemError, "a lower limit is above"),
        ({"inputs": {"q": InputLimits(jump=0.0)}}, ProblemError, "jump is 0.0; expected more"),
        ({"inputs": {"q": InputLimits(upper=np.nan)}}, ProblemError, "upper holds NaN"),
        ({"inputs": {"q": InputLimits(np.inf, np.inf)}}, ProblemError, "or all is refused"),
        ({"fade_time": 1e9}, ProblemError, r"fade_time is 1000000000.0 s, which is \d+ ticks"),
        ({"stale_after": 2**40}, ProblemError, "a whole number of ticks from 0 to 2147483647"),
        ({"rate": -1.0}, ProblemError, "rate is -1.0 in one component"),
        ({"rate": {"motor/1": 0.0}}, ProblemError, "rate is 0.0 in one component"),
        ({"stale_after": -1}, ProblemError, "stale_after is -1, expected a whole number"),
        ({"trip_after": 0}, ProblemError, "trip_after is 0, expected a whole number"),
        ({"recover_after": 2.5}, ProblemError, "recover_after is 2.5, expected a whole"),
        ({"fade_time": -0.1}, ProblemError, "fade_time is -0.1 s, expected a time from 0"),
        ({"fade_time": np.inf}, ProblemError, "fade_time is inf s"),
        ({"safe_law": 3}, ProblemError, "safe_law is 3; expected a Function"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options, kind, message, tmp_path):
    with pytest.raises(kind, match=message):
        export(tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_a_safe_law_of_other_inputs_or_controls_is_refused(tmp_path):
    x = ca.SX.sym("x", 2)
    for law, kind, message in (
        (
            ca.Function("s", [x], [x[0]], ["q"], ["u"]),
            ProblemError,
            r"outputs u \(1, 1\); expected",
        ),
        (ca.Function("s", [x], [x], ["q"], ["tau"]), ProblemError, r"outputs tau \(2, 1\)"),
        (ca.Function("s", [x], [x], ["a"], ["u"]), UnknownNameError, "unknown input of safe_law"),
        (ca.Function("s", [x[0]], [x[[0, 0]]], ["q"], ["u"]), ProblemError, "input 'q' is 1x1"),
    ):
        with pytest.raises(kind, match=message):
            export(tmp_path, safe_law=law)


def test_a_function_that_is_no_controller_cannot_be_supervised(tmp_path):
    with pytest.raises(ExportError, match="has no control u and no period"):
        codegen.export_c(planar_arm(), tmp_path / "c", supervision=Supervision())


def test_limits_by_name_leave_the_other_components_without_one(tmp_path):
    project = export(
        tmp_path, inputs={"q": InputLimits(upper={"knee": 0.5})}, rate={"motor.1": 1e9}
    )
    running = project.supervised()
    running.step({"q": [40.0, 0.4]})
    assert not running.events
    running.step({"q": [40.0, 0.6]})
    assert running.events == codegen.TickEvent.OUT_OF_RANGE | codegen.TickEvent.FAILED_TICK
    assert running.fault == "q[1] knee"
    with pytest.raises(ShapeError, match="NaN"):
        running.start([np.nan, 0.0])
    with pytest.raises(ProblemError, match="sample is -1"):
        running.step({}, sample=-1)
    with pytest.raises(ExportError, match="has no feedback phase"):
        running.feedback({})
    with pytest.raises(ExportError, match="prepares nothing"):
        running.prepare({})
    with pytest.raises(ProblemError, match="log_ticks is -1"):
        project.supervised(log_ticks=-1)


def test_a_constant_safe_law_that_is_not_finite_is_refused(tmp_path):
    law = ca.Function("safe", [], [ca.DM([0.0, np.nan])], [], ["u"])
    with pytest.raises(ProblemError, match=r"safe_law is the constant .*expected finite numbers"):
        export(tmp_path, safe_law=law)
