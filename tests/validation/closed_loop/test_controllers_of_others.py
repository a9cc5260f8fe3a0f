"""Controllers that are not ours: functions, exports, libraries and policies in the loop."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.validation_problems import (
    SLIDER,
    SLIDER_GAIN,
    SLIDER_LIMIT,
    SLIDER_STEP,
    compiled_library,
)

import mbcasadi as mb
from mbcasadi.errors import CompilerError, ControllerError, ExportError, ProblemError
from mbcasadi.validation import (
    Policy,
    ScenarioOptions,
    Trial,
    cases,
    compile_controller,
    shared_library,
)
from mbcasadi.validation.metrics.criteria import JUDGED
from mbcasadi.validation.spec import read_spec

START = [0.3]
DURATION = 0.4
CONDITIONS = {"q0": START, "delay": 2, "perturb": {"mass": 0.2}, "disturbance": [0.5]}
SAME_ARITHMETIC = 1e-13  # products summed in another order

PD_C = """
static int calls;
void reset(void) { calls = 0; }
void pd(double t, const double *q, const double *v, double *u) {
  ++calls; u[0] = -20 * q[0] - 8 * v[0]; }
void timed(double t, const double *ref, const double *q, double *u) { u[0] = ref[1] * t - q[0]; }
void counted(const double *q, const double *v, double *u) { u[0] = calls++; }
void wide(const double *q, const double *v, double *u) { u[0] = 0; u[1] = 1; }
void nothing(const double *q, const double *v, double *u) { }
"""


def pd(t, q, v):
    return -SLIDER_GAIN @ np.concatenate([q, v])


def run_of(controller, **options):
    return mb.validate(controller, SLIDER, DURATION, **(CONDITIONS | options)).runs[0]


def simulated(law, delay, mass, force):
    """Return the positions in MuJoCo of a slider under a law, without our loop."""
    model = mujoco.MjModel.from_xml_string(SLIDER)
    model.body_mass[:] *= mass
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)
    data.qpos[:], data.qfrc_applied[:] = START, force
    controls, places = [], []
    for k in range(round(DURATION / SLIDER_STEP)):
        controls.append(law(k * SLIDER_STEP, data.qpos.copy(), data.qvel.copy()))
        places.append(data.qpos[0])
        data.ctrl[:] = controls[max(0, k - delay)]
        mujoco.mj_step(model, data)
    return np.array(places)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled_library(tmp_path_factory.mktemp("library"), PD_C)


def functions():
    q, v, t = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("t")
    u = -SLIDER_GAIN @ ca.vertcat(q, v)
    return {
        "named": ca.Function("pd", [v, q], [u], ["v", "q"], ["u"]),
        "of q and v": ca.Function("pd", [q, v], [u]),
        "of others' names": ca.Function("pd", [q, v], [u], ["qpos", "qvel"], ["tau"]),
        "in MX": ca.Function("pd", [q, v, t], [u, 0], ["q", "v", "t"], ["u", "status"]),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return mb.export_c(functions()["of q and v"], tmp_path_factory.mktemp("export") / "pd").folder


def test_every_kind_of_controller_is_the_same_law_in_the_same_plant(library, folder):
    observed = Policy(lambda d: (d.qpos[0], d.qvel[0]), lambda o: o, lambda o: -SLIDER_GAIN @ o)
    given = {
        "callable": pd,
        **functions(),
        "folder": folder,
        "text": str(folder),
        "project": mb.open_project(folder),
        "external": ca.external("pd", str(mb.open_project(folder).build().path)),
        "library": shared_library(library, "pd", ("t", "q", "v"), reset="reset"),
        "policy": observed,
    }
    expected = simulated(pd, delay=2, mass=1.2, force=0.5)
    assert np.ptp(expected) > 0.05
    for kind, controller in given.items():
        record = run_of(controller).recording
        np.testing.assert_allclose(
            record.q[:, 0], expected, atol=SAME_ARITHMETIC, err_msg=f"{kind} in the loop"
        )


def test_what_a_controller_does_not_report_is_left_out_and_named():
    run = run_of(pd)
    assert run.passed is None
    assert [(v.metric, v.passed) for v in run.verdicts] == [("finished", True), (JUDGED, None)]
    assert not [m for m in run.metrics if m.name.startswith(("status", "tracking", "prediction"))]
    assert run.statuses == {}
    note = next(note for note in run.notes if note.startswith("Left out"))
    assert "Python function" in note
    assert "tracking error, status" in note
    assert note in str(mb.validate(pd, SLIDER, DURATION))
    assert "status" in run_of(functions()["in MX"]).to_dict()


def test_controls_beyond_the_actuators_are_clipped_by_mujoco_and_counted():
    run = run_of(lambda t, *_: [100.0 if t < 0.1 else 0.0], delay=0)
    assert run.metric("torque.saturated") == pytest.approx(0.25)
    assert run.metric("torque.max") == 100.0
    assert np.isnan(run.metric("torque.excess"))
    assert run.recording.actuator_force[0, 0] == SLIDER_LIMIT


def test_the_period_is_the_models_step_or_what_is_given(folder):
    assert run_of(pd).controller.period == SLIDER_STEP
    slow = run_of(pd, period=0.04)
    assert slow.recording.ticks == 10
    fine = run_of(pd, period=0.008)
    assert fine.settings["plant's time step"] == "8 ms (1 in a period)"
    with pytest.raises(ProblemError, match=r"period = -1.*positive"):
        run_of(pd, period=-1.0)


def test_the_manifest_of_an_exported_law_gives_period_limits_and_statuses(tmp_path):
    system = mb.read_mjcf(SLIDER)
    law = mb.control.laws.computed_torque(
        system,
        mb.control.PostureTask(kp=100.0),
        options=mb.control.laws.LawOptions(period=0.02, name="arm_servo"),
    )
    with compile_controller(law) as compiled:
        ref = np.zeros(3)
        own = run_of(compiled, reference=ref)
        project = mb.export_c(law, tmp_path / "law")
        exported = run_of(project, reference=ref)
        with pytest.raises(
            ProblemError, match=r"entries \(.*the exported C in .*law\.reference_at"
        ):
            run_of(project)
        with pytest.raises(ProblemError, match=r"exported folder; .* TOML file .*mb\.validate\('"):
            read_spec(project.folder)
    assert exported.controller.period == 0.02
    np.testing.assert_array_equal(exported.controller.u_max, own.controller.u_max)
    assert exported.controller.statuses == own.controller.statuses
    np.testing.assert_array_equal(exported.recording.q, own.recording.q)
    assert exported.statuses == own.statuses
    assert exported.times is not None
    assert "tracking.hold_share" not in {v.metric for v in exported.verdicts}
    with pytest.raises(ProblemError, match=r"period = 0\.01 s.*its own, 0\.02 s"):
        run_of(project, reference=ref, period=0.01)


def test_an_export_that_is_built_runs_without_a_compiler(folder, tmp_path, monkeypatch):
    built = run_of(folder)
    assert built.times is not None
    monkeypatch.setenv("CC", "no-such-compiler")
    run = run_of(folder)
    np.testing.assert_array_equal(run.recording.q, built.recording.q)
    assert run.times is None
    assert any("The ticks were not timed" in note for note in run.notes)
    project = mb.export_c(functions()["in MX"], tmp_path / "new")
    with pytest.raises(CompilerError, match="no-such-compiler"):
        run_of(project)


def test_what_a_function_raises_is_the_cause_of_one_error():
    def breaks(t, q, v):
        if t > 0.1:
            raise KeyError("gain")
        return [0.0]

    with pytest.raises(ControllerError, match=r"at t = 0\.11 s, .*'breaks' raised KeyError") as e:
        run_of(breaks)
    assert isinstance(e.value.__cause__, KeyError)
    assert e.value.__cause__.__traceback__ is not None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0.0, 0.0], r"t = 0\.05 s.*shape \(2,\); expected \(1,\)"),
        ([np.nan], r"t = 0\.05 s.*NaN"),
        ("stop", r"t = 0\.05 s.*'stop'; expected u"),
        (None, r"t = 0\.05 s.*None; expected u"),
    ],
)
def test_an_answer_that_is_no_control_is_an_error_that_says_when(answer, message):
    late = {False: [0.0], True: answer}
    with pytest.raises(ControllerError, match=message):
        run_of(lambda t, *_: late[t > 0.045])
    policy = Policy(lambda data: data.time, lambda t: late[t > 0.045])
    with pytest.raises(ControllerError, match=message):
        run_of(policy)


def test_a_function_that_divides_by_zero_says_when():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    with pytest.raises(ControllerError, match=r"t = 0 s, the Function 'f' gave NaN or inf"):
        run_of(ca.Function("f", [q, v], [1 / v]))


def test_inputs_that_no_name_and_no_size_tells_apart_are_refused():
    x = [ca.SX.sym("x") for _ in range(3)]
    with pytest.raises(ProblemError, match=r"which may be \('t', 'q', 'v'\) or \('q', 'v', 'ref'"):
        run_of(ca.Function("f", x, [x[0]]))
    with pytest.raises(ProblemError, match="which fit no order"):
        run_of(ca.Function("f", [ca.SX.sym("x", 5)], [0]))
    with pytest.raises(ProblemError, match=r"takes q of size 5, but the plant has 1"):
        run_of(ca.Function("f", [ca.SX.sym("q", 5)], [0], ["q"], ["u"]))
    with pytest.raises(ProblemError, match=r"gives u of size 2, but the plant has 1"):
        run_of(ca.Function("f", x[:2], [ca.vertcat(x[0], 1)]))
    with pytest.raises(ProblemError, match="one of them named u"):
        run_of(ca.Function("f", x[:2], [x[0], x[1]]))
    swapped = ca.Function("f", x[:2], [x[0]], ["v", "position"], ["u"])
    with pytest.raises(ProblemError, match="which fit no order"):
        run_of(swapped)


def test_a_function_with_a_reference_and_a_state_gets_both():
    q, v, ref, z = (ca.SX.sym(n) for n in ("q", "v", "ref", "z"))
    names = ["q", "v", "ref", "z"], ["u", "z_next"]
    summing = ca.Function("summing", [q, v, ref, z], [ref + z, z + ref], *names)
    record = run_of(summing, reference=lambda t: [t]).recording
    np.testing.assert_allclose(record.u[:, 0], np.cumsum(record.t), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": [1.0]}, "takes no reference; expected an input 'ref'"),
        ({"scenario": ScenarioOptions(mask=[1.0])}, "takes no mask"),
        ({"scenario": ScenarioOptions(tuning=[1.0])}, "takes no tuning"),
    ],
)
def test_what_a_function_does_not_take_is_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        run_of(pd, **options)


def test_callables_of_other_arguments_and_policies_without_observation_are_refused():
    class Model:
        def predict(self, observation):
            return observation, None

    with pytest.raises(ProblemError, match=r"function of \(q, v\); expected \(t, q, v\) → u"):
        run_of(lambda q, v: q + v)
    with pytest.raises(ProblemError, match=r"validation\.Policy\(observe, policy, action\)"):
        run_of(Model())


def test_a_recurrent_policy_of_gymnasium_keeps_its_state_and_starts_again():
    class Counts:
        def predict(self, observation, state=None, deterministic=False):
            assert deterministic
            return [(state or 0) + observation], (state or 0) + 1

    policy = Policy(lambda data: 100.0 * (data.ctrl[0] > 2), Counts())
    for _ in range(2):
        u = run_of(policy, delay=0).recording.u[:5, 0]
        np.testing.assert_array_equal(u, [0, 1, 2, 3, 104])  # it observes the last control


def test_a_library_is_checked_when_it_is_opened_and_when_it_writes(library, tmp_path):
    with pytest.raises(ExportError, match="no symbol 'none'"):
        shared_library(library, "none")
    with pytest.raises(ExportError, match="no such file"):
        shared_library(tmp_path / "none.so", "pd")
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(ExportError, match="cannot be loaded"):
        shared_library(tmp_path / "text.so", "pd")
    with pytest.raises(ProblemError, match="inputs = 'x'"):
        shared_library(library, "pd", ("x",))
    with pytest.raises(ProblemError, match="ref_size = 0; expected a size"):
        shared_library(library, "timed", ("t", "ref", "q"))
    with pytest.raises(ControllerError, match="wrote beyond the 1 numbers of u"):
        run_of(shared_library(library, "wide"))
    with pytest.raises(ControllerError, match="gave NaN"):
        run_of(shared_library(library, "nothing"))
    timed = shared_library(library, "timed", ("t", "ref", "q"), ref_size=2)
    record = run_of(timed, reference=[0.0, 3.0]).recording
    np.testing.assert_allclose(record.u[:, 0], 3 * record.t - record.q[:, 0], atol=1e-15)
    counted = shared_library(library, "counted", reset="reset")
    assert [run_of(counted).recording.u[0, 0] for _ in range(2)] == [0.0, 0.0]


def test_paths_that_are_no_export_are_refused(library, tmp_path):
    with pytest.raises(ExportError, match=r"shared_library\("):
        run_of(library)
    with pytest.raises(ExportError, match="is no folder"):
        run_of("no/such/folder")
    with pytest.raises(ExportError, match=r"no readable manifest\.json"):
        run_of(tmp_path)


def test_a_campaign_takes_the_same_kinds():
    result = mb.campaign(pd, SLIDER, Trial(0.1, q0=START), cases([0, 1], [{"mass": 0.1}]))
    assert [o.verdicts[0].passed for o in result.outcomes] == [True, True]
    assert len(result.outcomes) == 2
