"""Supervised ticks in C beside a model of the supervision in NumPy, and what they promise."""

import subprocess
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from codegen_problems import saturated_controller
from supervision_model import Model
from test_single_precision import computed_torque, phased, standing

from mbcasadi import codegen
from mbcasadi.codegen import InputLimits, Supervision, TickEvent
from mbcasadi.codegen.calls import pointer
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.supervision.supervised import new_supervised
from mbcasadi.description import Signal
from mbcasadi.description.status import Flag

TICKS = 1500
QUICK = ["-O0"]  # for large laws, where the compiler's time would be most of the test's
FADE = 12  # ticks
RATES = {"law": 20.0, "quadruped": 300.0, "two phases": 100.0, "by hand": 40.0}  # 1/s


def damping(law):
    """Return a safe law: (v) → (u)."""
    v = ca.SX.sym("v", law.function.size_in("v"))
    u = -0.5 * v[v.numel() - law.u_min.size :]
    return ca.Function("damp", [v], [u], ["v"], ["u"])


def problem(name):
    """Return controller, ordinary inputs, limits by input, and options of the supervision."""
    if name == "law":
        law, _ = computed_torque()
        start = {k: v for k, v in law.example_inputs().items() if k != "z"}
        start = {"v": np.zeros(law.system.nv)} | start
        limits = {"q": (-4.0, 4.0, 0.05), "v": (-np.inf, np.inf, 0.8), "ref": (-9.0, 9.0, np.inf)}
        return law, start, limits, {"recover_after": 30, "stale_after": 2}
    if name == "quadruped":
        law, inputs = standing()
        start = {"q": inputs["q"][0], "v": np.zeros(18), "ref": inputs["ref"], "mask": np.ones(4)}
        limits = {"q": (-2.0, 2.0, 0.02)}
        return law, start, limits, {"recover_after": 40, "safe_law": damping(law.controller)}
    if name == "two phases":
        law, inputs = phased()
        start = {"q": 0.1 * inputs["q"][0], "ref": inputs["ref"][0]}
        limits = {"q": (-3.0, 3.0, 0.5), "ref": (-9.0, 9.0, np.inf)}
        return law, start, limits, {"recover_after": 5, "stale_after": 4, "trip_after": 4}
    law = saturated_controller()
    start = {"q": np.array([0.2, -0.1]), "v": np.zeros(2)}
    return law, start, {"q": (-1.0, 1.0, 0.05)}, {"trip_after": 6}


def supervised_project(name, folder, real="double"):
    controller, start, limits, options = problem(name)
    data = getattr(controller, "controller", controller)
    rate = RATES[name]
    limited = {k: InputLimits(*row) for k, row in limits.items()}
    supervision = Supervision(limited, rate=rate, fade_time=FADE * data.period, **options)
    project = codegen.export_c(controller, folder, real=real, supervision=supervision)
    if name == "quadruped":
        project.manifest["flags"] = QUICK
    return data, start, limits, options, rate * data.period, project


@pytest.fixture(scope="module")
def standing_project(tmp_path_factory):
    """Return what `supervised_project` gives for the quadruped, made once."""
    return supervised_project("quadruped", tmp_path_factory.mktemp("stand") / "c")


def model_of(project, data, limits, options, rate):
    bare = project.memory()
    safe = options.get("safe_law")
    quaternions = {}
    for name in limits:
        signal = next(s for s in project.manifest["inputs"] if s["name"] == name)
        quaternions[name] = [k for k, c in enumerate(signal["components"]) if c.endswith(".qw")]
    return Model(
        step=lambda inputs: project.step(bare, inputs), z=np.array(project.manifest["z0"]),
        u_safe=np.array(project.manifest["u_safe"]), u_limits=(data.u_min, data.u_max),
        safe_statuses=data.safe_statuses, spoiled=project.manifest["supervision"]["spoiled"],
        limits=limits, quaternions=quaternions, rate=rate, stale_after=options.get("stale_after"),
        trip_after=options.get("trip_after", max(3, round(0.01 / data.period))),
        recover_after=options.get("recover_after"), fade_ticks=FADE,
        safe_law=None if safe is None else lambda x: np.array(safe(x["v"])).ravel(),
    )  # fmt: skip


def wild_inputs(start, limits, ticks, seed):
    """Yield inputs, number of the sample, and what a program does before the tick.

    Ordinary ticks move by less than the jump; faults of all kinds come in bursts of any length.
    """
    rng = np.random.default_rng(seed)
    at, sample, burst, fault = {k: np.array(x, float) for k, x in start.items()}, 0, 0, ""
    kinds = ("none", "nan", "infinite", "jump", "range", "stale", "turned", "reference")
    kinds += ("flat", "other")
    for _ in range(ticks):
        for name, (_, _, jump) in limits.items():
            size = min(jump, 0.01) * 0.5
            centred = np.asarray(start[name]) - at[name]
            at[name] = at[name] + size * np.tanh(centred) + size * rng.uniform(-1, 1, centred.shape)
        if burst == 0:
            fault, burst = kinds[rng.integers(len(kinds))], int(rng.integers(1, 30))
        burst -= 1
        x = {k: v.copy() for k, v in at.items()}
        sample += fault != "stale"
        entry = rng.integers(x["q"].size)
        if fault == "nan":
            x["q"][entry] = np.nan
        elif fault == "infinite":
            x["q"][entry] = -np.inf
        elif fault == "jump":
            x["q"][entry] += 0.7 * limits["q"][2] * rng.integers(0, 9)
        elif fault == "range":
            x["q"][entry] = 50.0
        elif fault == "reference" and "ref" in x:
            x["ref"][:] = np.nan
        elif fault == "flat" and x["q"].size > 7:
            x["q"][3:7] *= 0.1
        elif fault == "other" and "v" in x:
            x["v"][0] = rng.choice([np.nan, np.inf])
        elif fault == "turned" and x["q"].size > 7:
            x["q"][3:7] *= -1
        action = rng.choice(["", "start", "reset"], p=[0.98, 0.01, 0.01])
        yield x, sample % 2**32, action


@pytest.mark.long
def test_ticks_of_a_quadruped_are_those_of_the_model(standing_project):
    compare_with_model("quadruped", *standing_project)


@pytest.mark.parametrize("name", ["law", "two phases", "by hand"])
@pytest.mark.every(2)
def test_ticks_are_those_of_the_model(name, tmp_path):
    compare_with_model(name, *supervised_project(name, tmp_path / "c"))


def compare_with_model(name, data, start, limits, options, rate, project):
    model = model_of(project, data, limits, options, rate)
    running = project.supervised()
    rng = np.random.default_rng(5)
    seen, size = (
        TickEvent(0),
        max(1.0, np.abs(data.u_max[np.isfinite(data.u_max)]).max(initial=1.0)),
    )
    for k, (inputs, sample, action) in enumerate(wild_inputs(start, limits, TICKS, seed=7)):
        if action == "start":
            u = rng.uniform(-2, 2, data.u_min.size)
            running.start(u)
            model.start(u)
        elif action == "reset":
            running.reset()
            model.reset()
        in_phases = name == "two phases" and rng.random() < 0.8
        if in_phases:
            running.prepare({"ref": inputs["ref"]})
        before = model.last.copy() if model.has_last else None
        found = (running.feedback if in_phases else running.step)(inputs, sample)
        u, events, outputs = model.tick(inputs, sample)
        assert running.events == events, f"tick {k}"
        np.testing.assert_allclose(found["u"], u, atol=1e-9 * size, err_msg=f"tick {k}")
        if not in_phases:  # the status of a feedback that was prepared from other inputs is 3 too
            np.testing.assert_array_equal(found["status"], outputs["status"])
        assert np.all((found["u"] >= data.u_min) & (found["u"] <= data.u_max))
        assert before is None or np.all(np.abs(found["u"] - before) <= rate * (1 + 1e-9))
        seen |= events
    expected = (
        TickEvent.NOT_FINITE | TickEvent.OUT_OF_RANGE | TickEvent.JUMP | TickEvent.FAILED_TICK
    )
    expected |= TickEvent.TRIPPED | TickEvent.SAFE | TickEvent.FADING | TickEvent.RATE_LIMITED
    if "recover_after" in options:
        expected |= TickEvent.RECOVERED
    if "stale_after" in options:
        expected |= TickEvent.STALE
    assert seen == expected


def test_a_copy_of_the_memory_is_a_copy_of_the_controller(tmp_path):
    _, start, limits, _, _, project = supervised_project("law", tmp_path / "c")
    one, other = project.supervised(), project.supervised()
    ticks = list(wild_inputs(start, limits, 300, seed=1))
    for k, (inputs, sample, _) in enumerate(ticks):
        if k == 150:
            other.block[:] = one.block
        found = one.step(inputs, sample)
        if k >= 150:
            again = other.step(inputs, sample)
            for name, values in found.items():
                np.testing.assert_array_equal(values, again[name])
            assert one.events == other.events
            assert one.fault == other.fault


def test_switching_between_two_exports_has_no_jump(tmp_path):
    """Both controllers differ by 6.25 N m at this pose; without a start u jumps by all of it."""
    steps = {}
    for bumpless in (False, True):
        fading = Supervision(fade_time=0.1)
        soft, stiff = (
            codegen.export_c(pd(name, gain), tmp_path / f"{name}{bumpless}", supervision=fading)
            for name, gain in (("soft", 5.0), ("stiff", 30.0))
        )
        soft, stiff = soft.supervised(), stiff.supervised()
        inputs, controls = {"q": [0.25], "v": [0.0]}, []
        for k in range(150):
            if k == 50 and bumpless:
                stiff.start(soft.control)
            controls.append((soft if k < 50 else stiff).step(inputs)["u"][0])
        steps[bumpless] = np.abs(np.diff(controls)).max()
        assert controls[0] == pytest.approx(-1.25)
        assert controls[-1] == pytest.approx(-7.5)
    assert steps[False] == pytest.approx(6.25)
    assert steps[True] == pytest.approx(6.25 / 50)  # 0.1 s of 2 ms


def pd(name, gain):
    base = saturated_controller(name)
    q, v, z = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("z", 1)
    law = ca.Function(
        "law", [q, v, z], [-gain * q - v, z, 0], ["q", "v", "z"], ["u", "z_next", "status"]
    )
    one = {
        s.name: Signal(s.name, s.components[:1], s.units[:1]) for s in base.inputs + base.outputs
    }
    return replace(
        base,
        function=law,
        inputs=tuple(one[s.name] for s in base.inputs),
        outputs=tuple(one[s.name] for s in base.outputs),
        u_min=np.full(1, -50.0),
        u_max=np.full(1, 50.0),
    )


@pytest.mark.parametrize("real", ["double", "float"])
def test_a_law_that_does_not_see_nan_repeats_its_last_control(tmp_path, real):
    """fmin(5, NaN) is 5: this law gives its largest torque for NaN, with status 0."""
    controller = saturated_controller()
    watched = Supervision(inputs={"q": InputLimits()}, trip_after=5, fade_time=0.0)
    project = codegen.export_c(controller, tmp_path / "c", real=real, supervision=watched)
    bare = project.step(project.memory(), {"q": [np.nan, 0.0]})["u"]
    assert bare[0] == 5.0
    running = project.supervised()
    last = running.step({"q": [0.1, 0.0]})["u"]
    for k in range(10):
        u = running.step({"q": [np.nan, 0.0]})["u"]
        np.testing.assert_array_equal(u, last if k < 5 else project.manifest["u_safe"])
    assert running.events == TickEvent.NOT_FINITE | TickEvent.SAFE
    assert running.fault == "q[0] hip"
    running.reset()
    np.testing.assert_array_equal(running.step({"q": [0.1, 0.0]})["u"], last)


BUSY = """\
#include "{name}_supervised.c"
void set_busy(void *memory, int busy) {{ ((struct supervised *)memory)->busy = busy; }}
"""


def test_memory_that_is_not_ready_and_calls_that_interrupt_have_a_safe_output(tmp_path):
    *_, project = supervised_project("law", tmp_path / "c")
    start = problem("law")[1]
    (tmp_path / "busy.c").write_text(BUSY.format(name=project.name))
    library = tmp_path / "busy.so"
    command = [*find_compiler(), "-O1", "-shared", "-fPIC", f"-I{project.folder}"]
    command += [tmp_path / "busy.c", project.source, "-lm", "-o", library]
    subprocess.run(command, check=True)
    running = new_supervised(project.manifest, library, log_ticks=8)
    ready = running.block.copy()
    running.block[:] = 0.0
    found = running.step(start)
    np.testing.assert_array_equal(found["u"], project.manifest["u_safe"])
    assert found["status"] == 3
    assert found["flags"] == Flag.UNINITIALISED
    running.block[:] = ready
    for k in range(5):
        running.step(start | {"ref": start["ref"] + 0.1 * k})
    before, address = running.block.copy(), pointer(running.block)
    running.library.set_busy(address, 1)
    found = running.step(start)
    np.testing.assert_array_equal(found["u"], running.control)
    assert found["status"] == 3
    assert found["flags"] == Flag.INTERRUPTING
    running.library.set_busy(address, 0)
    np.testing.assert_array_equal(running.block, before)
    assert running.log().ticks.size == 5  # neither of the refused calls has a record


def test_a_safe_law_stays_within_the_limits_and_is_left_out_where_it_is_not_finite(tmp_path):
    """u = 1000 √q_0 for both motors, NaN below zero; the limits are 5 N m."""
    q = ca.SX.sym("q", 2)
    wild = ca.Function("wild", [q], [1000 * ca.sqrt(q[0]) * ca.DM.ones(2)], ["q"], ["u"])
    running = codegen.export_c(
        saturated_controller(),
        tmp_path / "c",
        supervision=Supervision(
            {"q": InputLimits(-1, 1)}, trip_after=1, recover_after=4, fade_time=0.0, safe_law=wild
        ),
    ).supervised()
    running.step({"q": [3.0, 0.0]})
    assert TickEvent.TRIPPED in running.events
    np.testing.assert_array_equal(running.step({"q": [0.5, 0.0]})["u"], [5.0, 5.0])
    safe = running.manifest["u_safe"]
    np.testing.assert_array_equal(running.step({"q": [-0.5, 0.0]})["u"], safe)
    np.testing.assert_array_equal(running.step({"q": [3.0, 0.0]})["u"], safe)
    for _ in range(4):
        u = running.step({"q": [0.1, 0.0]})["u"]
    np.testing.assert_array_equal(u, [5.0, 5.0])
    assert TickEvent.RECOVERED in running.events
    np.testing.assert_allclose(running.step({"q": [0.1, 0.0]})["u"], [-2.0, 0.0])
    assert running.library.pd_supervised_start(pointer(running.block), None) == -2
    running.library.pd_supervised_control(pointer(running.block), None)


def test_a_safe_law_may_be_a_constant(tmp_path):
    hold = ca.Function("hold", [], [ca.DM([1.0, 2.0])], [], ["u"])
    supervision = Supervision(trip_after=1, fade_time=0.0, safe_law=hold)
    running = codegen.export_c(
        saturated_controller(), tmp_path / "c", supervision=supervision
    ).supervised()
    running.step({"q": [np.nan, 0.0]})
    np.testing.assert_array_equal(running.step({"q": [0.1, 0.0]})["u"], [1.0, 2.0])


def test_the_manifest_bounds_stack_and_memory_of_a_supervised_tick(tmp_path):
    *_, project = supervised_project("law", tmp_path / "c")
    found, entry = project.footprint("gcc"), project.manifest["supervision"]
    assert found.memory_bytes == entry["memory_bytes"] > project.manifest["memory_bytes"]
    assert project.manifest["stack_bytes"] < entry["stack_bytes"] == found.stack_bound_bytes
    assert found.stack_bytes <= found.stack_bound_bytes <= 2 * found.stack_bytes


def test_nothing_jumps_while_the_source_of_the_safe_control_changes(standing_project):
    """NaN in v, which has no limits: own safe output, then the safe law, then the controller."""
    _, start, _, options, rate, project = standing_project
    running = project.supervised()
    rng, controls, events = np.random.default_rng(0), [], []
    for k in range(400):
        inputs = start | {"v": 0.001 * rng.standard_normal(18)}
        if 50 <= k < 100:
            inputs["v"] = np.full(18, np.nan)
        controls.append(running.step(inputs)["u"])
        events.append(running.events)
    assert all(TickEvent.NOT_FINITE in e for e in events[50:100])
    assert sum(TickEvent.TRIPPED in e for e in events) == 1
    recovered = [k for k, e in enumerate(events) if TickEvent.RECOVERED in e]
    assert recovered == [99 + options["recover_after"]]
    far = np.abs(controls[recovered[0]] - controls[20]).max()
    assert far > 3.0  # N m: the safe law is no standing law
    tripped = next(k for k, e in enumerate(events) if TickEvent.TRIPPED in e)
    changes = (tripped + 1, 100, recovered[0] + 1)  # safe output, safe law, controller
    fading = [k for k, e in enumerate(events) if TickEvent.FADING in e]
    assert fading == [k + i for k in changes for i in range(FADE)]
    assert np.abs(np.diff(controls, axis=0)).max() <= rate * (1 + 1e-9) < far / 10


def test_zeros_never_become_a_measured_rotation(standing_project):
    _, start, _, _, _, project = standing_project
    running = project.supervised()
    running.step(start)
    flat = start["q"].copy()
    flat[3:7] = 0.0
    for _ in range(100):
        running.step(start | {"q": flat})
        assert TickEvent.OUT_OF_RANGE in running.events
    running.step(start)
    assert running.events & (TickEvent.OUT_OF_RANGE | TickEvent.JUMP) == 0
