"""Two rates in one export: which plan a tick follows, what is refused, and what is held."""

import shutil
import subprocess
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from support.two_rates_problems import (
    AGREES,
    BAD_INPUT,
    COMMAND,
    EVERY,
    FAILED,
    FAST,
    HELD,
    NO_PLAN,
    SLOW,
    SOLVED,
    SPREAD,
    TIME,
    two_rates,
)

import mbcasadi as mb
from mbcasadi.codegen import open_two_rates
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.description.status import Flag
from mbcasadi.errors import ExportError, ProblemError, ShapeError, UnknownNameError

Q = V = np.zeros(2)
LATEST = 4 * SLOW
ROUNDING = 1e-12
WARNINGS = ("-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion")
WARNINGS += ("-Wshadow", "-Werror")
NO_OUTPUT = {"malloc", "calloc", "realloc", "free", "printf", "puts", "fwrite"}


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.long), 3])
def project(request, tmp_path_factory):
    parts = two_rates(request.param, f"hand{request.param}")
    return mb.export_two_rates(parts, tmp_path_factory.mktemp("c") / "out")


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return mb.export_two_rates(two_rates(), tmp_path_factory.mktemp("c") / "out")


class Model:
    """The plan that acts, from all that were handed over."""

    def __init__(self, delay):
        self.delay, self.plans, self.begin = delay * SLOW, [], None

    def plan(self, t, command):
        self.plans.append((t + self.delay, t, command))

    def tick(self, t):
        """Return moment, time of the measurement and command of the plan that acts, or None."""
        if self.begin is None:
            self.begin = (t, 0.0, 0.0)
        due = [plan for plan in self.plans if plan[0] <= t + FAST / 4]
        acts = max(due, key=lambda plan: plan[0]) if due else self.begin
        return acts if t - acts[0] <= LATEST else None


def test_a_tick_follows_the_newest_plan_whose_moment_has_come(project):
    """Plans at irregular times, some without a solution, some missing for longer than they last."""
    rng = np.random.default_rng(3)
    delay = project.manifest["delay"]
    run, model, seen = project.load(), Model(delay), set()
    assert project.manifest["latest"] == pytest.approx(LATEST)
    next_plan, t = 0.0, 0.0
    for _ in range(3000):
        t += FAST * rng.uniform(0.8, 1.2)
        if t >= next_plan:
            kind, command = rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]), rng.normal()
            v = {0: [0, 0], 1: [150, 0], 2: [250, 0], 3: [np.nan, 0]}[kind]
            code = run.plan(Q, v, [command], t)["code"]
            assert code == [SOLVED, FAILED, FAILED, BAD_INPUT][kind]
            if kind == 0:
                model.plan(t, command)
            next_plan = t + SLOW * (rng.uniform(0.95, 1.3) if rng.random() < 0.95 else 10)
        out, expected = run.tick(Q, V, t), model.tick(t)
        if expected is None:
            assert (out["code"], out["status"]) == (NO_PLAN, BAD_INPUT)
            assert np.isnan(out["age"])
            assert np.all(out["u"] == HELD)
        else:
            moment, measured, command = expected
            assert (out["code"], out["status"]) == (SOLVED, SOLVED)
            assert out["age"] == pytest.approx(t - moment, abs=ROUNDING)
            assert out["u"][[TIME, COMMAND]] == pytest.approx([measured, command], abs=ROUNDING)
            assert out["u"][SPREAD] == 0
        seen.add((expected is None, expected is not None and expected[1] > 0))
    first = set() if delay == 0 else {(False, False)}
    assert seen == {(True, False), (False, True)} | first


def test_plan_and_tick_in_lock_step_act_after_the_delay(project):
    run, delay = project.load(), project.manifest["delay"]
    for k in range(5 * EVERY):
        t = k * FAST
        if k % EVERY == 0:
            planned = run.plan(Q, V, [k], t)
            assert planned["plan"][0] == t
            assert planned["plan"][-1] == k // EVERY, "the state of the references"
            assert planned["plan"][-4:-2] == pytest.approx([k, k]), "what the last tick has learned"
        out = run.tick(Q, V, t)
        acts = max(k // EVERY - delay, 0)
        expected = [acts * SLOW, acts * EVERY]
        assert out["u"][[TIME, COMMAND]] == pytest.approx(expected, abs=ROUNDING)
        assert out["residual"] == k, "the state of the law"
        assert out["flags"] == 1, "the mask of the plan"
    assert out["u"][AGREES] == pytest.approx(delay * SLOW, abs=ROUNDING)


def test_without_plans_the_first_one_is_followed_to_its_end(one):
    run, codes = one.load(), []
    for k in range(5 * EVERY):
        out = run.tick(Q, V, 7.0 + k * FAST)
        codes.append(int(out["code"]))
    first = codes.index(NO_PLAN)
    assert 4 * EVERY <= first <= 4 * EVERY + 1
    assert set(codes[first:]) == {NO_PLAN}
    assert np.all(out["u"] == HELD)
    assert run.plan(Q, V, [2.0], 8.0)["code"] == SOLVED
    assert run.tick(Q, V, 8.0)["code"] == NO_PLAN, "its moment has not come"
    assert run.tick(Q, V, 8.0 + SLOW)["u"][COMMAND] == 2, "plans are back"


@pytest.mark.parametrize("latest", [0.005, 1.0])
def test_an_option_says_when_a_plan_is_left(latest, tmp_path):
    project = mb.export_two_rates(two_rates(), tmp_path / "out", latest=latest)
    run = project.load(flags=("-O0",))
    run.tick(Q, V, 0.0)
    assert run.tick(Q, V, 0.99 * latest)["code"] == SOLVED
    assert run.tick(Q, V, 1.01 * latest)["code"] == NO_PLAN


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_inputs_that_are_no_numbers_give_a_status_and_leave_the_plans(one, bad):
    run = one.load()
    run.plan(Q, V, [1.0], 0.0)
    assert run.plan(Q, V, [bad], SLOW)["code"] == BAD_INPUT
    assert run.plan([bad, 0], V, [1.0], SLOW)["code"] == BAD_INPUT
    assert run.plan(Q, V, [1.0], bad)["code"] == BAD_INPUT
    for q, t in (([bad, 0], SLOW), (Q, bad)):
        out = run.tick(q, V, t)
        assert (out["code"], out["status"]) == (BAD_INPUT, BAD_INPUT)
        assert np.all(out["u"] == HELD)
    out = run.tick(Q, V, SLOW)
    assert out["code"] == SOLVED
    assert out["u"][COMMAND] == 1
    assert out["age"] == 0


def test_a_clock_that_goes_back_gives_no_plan_until_the_next_one_acts(one):
    run = one.load()
    for t in (5.0, 5.0 + SLOW):
        run.plan(Q, V, [1.0], t)
        run.tick(Q, V, t)
    assert run.tick(Q, V, 1.0)["code"] == NO_PLAN
    run.plan(Q, V, [2.0], 1.0)
    assert run.tick(Q, V, 1.0 + SLOW)["u"][COMMAND] == 2
    run.reset()
    out = run.tick(Q, V, 0.5)
    assert (out["code"], out["age"], out["residual"]) == (SOLVED, 0, 0)


def test_memory_that_is_not_ready_has_a_safe_output(one):
    run = one.load()
    run.block[:] = 0
    out = run.tick(Q, V, 0.0)
    assert out["code"] == -1
    assert out["flags"] == Flag.UNINITIALISED
    assert np.all(np.isfinite(out["u"]))
    assert run.plan(Q, V, [0.0], 0.0)["code"] == -1


def test_inputs_of_wrong_size_or_name_are_refused(one):
    run = one.load()
    with pytest.raises(ShapeError):
        run.plan(Q, V, [1.0, 2.0], 0.0)
    with pytest.raises(UnknownNameError, match="nothing"):
        run.tick(Q, V, 0.0, {"nothing": 1.0})


def test_equal_input_gives_equal_bytes_and_the_example_runs(one, tmp_path):
    again = mb.export_two_rates(two_rates(), tmp_path / "again")
    files = sorted(p.name for p in again.folder.iterdir())
    for name in files:
        assert (one.folder / name).read_bytes() == (again.folder / name).read_bytes(), name
    assert set(one.manifest["sha256"]) == {*files} - {"manifest.json"}
    text = again.run_example(flags=("-O0",))
    assert text.count("tick 0") == 10
    assert "100 ticks, 0 without a plan" in text


def test_a_folder_is_replaced_only_where_it_is_an_export(tmp_path):
    project = mb.export_two_rates(two_rates(), tmp_path / "out")
    project.build(flags=("-O0",))
    with pytest.raises(ExportError, match="not empty"):
        mb.export_two_rates(two_rates(), project.folder)
    mb.export_two_rates(two_rates(), project.folder, overwrite=True)
    assert not (project.folder / "build").exists()
    (project.folder / "mine").write_text("mine")
    with pytest.raises(ExportError, match=r"no export wrote \(mine\)"):
        mb.export_two_rates(two_rates(), project.folder, overwrite=True)


def test_an_export_is_opened_again_where_it_was_moved_to(tmp_path):
    mb.export_two_rates(two_rates(), tmp_path / "out").folder.rename(tmp_path / "moved")
    project = open_two_rates(tmp_path / "moved")
    assert project.load(flags=("-O0",)).tick(Q, V, 0.0)["code"] == SOLVED
    source = project.folder / "hand_follow.c"
    source.write_text(source.read_text() + "/* mine */\n")
    with pytest.raises(ExportError, match=r"changed since their export \(hand_follow\.c\)"):
        open_two_rates(project.folder)
    assert open_two_rates(project.folder, verify=False).name == "hand"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}'])
def test_a_folder_without_a_manifest_of_two_rates_is_refused(text, tmp_path):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ExportError, match="no manifest of format 'two rates 2'"):
        open_two_rates(tmp_path)


def changed(**values):
    return replace(two_rates(), **values)


def renamed(function, old, new):
    names = [new if n == old else n for n in function.name_out()]
    return ca.Function(
        "f", function.sx_in(), function(*function.sx_in()), function.name_in(), names
    )


NO_PREDICTION = replace(two_rates().plan, prediction=None)
REFUSED = {
    "name": (lambda: two_rates(), {"name": "double"}, "cannot name a C function"),
    "period": (lambda: changed(every=9), {}, "expected the same"),
    "plan": (lambda: changed(plan=two_rates().law, every=1), {}, "no output `plan`"),
    "plugin": (
        lambda: two_rates(emergency=False),
        {"mujoco_plugin": True},
        "no safe output of its own",
    ),
    "length": (lambda: changed(plan=NO_PREDICTION), {}, "expected latest="),
    "reference": (
        lambda: changed(references=renamed(two_rates().references, "ref", "setpoint")),
        {},
        "`references` gives 'setpoint' of size 5, `plan` takes",
    ),
    "followed": (
        lambda: changed(follow=renamed(two_rates().follow, "mask", "on")),
        {},
        "`follow` gives 'on' of size 2, `law` takes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_do_not_fit_are_refused_and_nothing_is_written(case, tmp_path):
    parts, options, message = REFUSED[case]
    with pytest.raises(ExportError, match=message):
        mb.export_two_rates(parts(), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def with_tuning(law, size):
    """Return a controller with unused tuning behind its reference."""
    f, place = law.function, law.function.name_in().index("ref") + 1
    entries = tuple(mb.TuningParameter(f"gain{i}", 1.0) for i in range(size))
    signal = mb.Signal("tuning", tuple(e.name for e in entries), ("",) * size)
    own, names, inputs = f.sx_in(), f.name_in(), [*law.inputs]
    outputs = f.call(own)
    for values, more in ((own, ca.SX.sym("tuning", size)), (names, "tuning"), (inputs, signal)):
        values.insert(place, more)
    function = ca.Function(law.name, own, outputs, names, f.name_out())
    return replace(law, function=function, inputs=tuple(inputs), tuning=entries)


@pytest.mark.long
def test_plan_and_law_may_have_tuning_of_their_own(tmp_path):
    parts = changed(plan=with_tuning(two_rates().plan, 5), law=with_tuning(two_rates().law, 2))
    project = mb.export_two_rates(parts, tmp_path / "out")
    assert "0 without a plan" in project.run_example(flags=("-O0", "-Werror"))
    run = project.load(flags=("-O0",))
    assert run.plan(Q, V, [1.0], 0.0, {"tuning": np.ones(5)})["code"] == SOLVED
    assert run.tick(Q, V, 0.0, {"tuning": np.ones(2)})["code"] == SOLVED
    assert "HAND_PLAN_TUNING_SIZE 5" in (project.folder / "hand.h").read_text()
    with pytest.raises(ExportError, match="both have an input 'tuning'"):
        mb.export_two_rates(parts, tmp_path / "plugin", mujoco_plugin=True)


def test_numbers_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ShapeError, match="u0"):
        mb.export_two_rates(changed(u0=np.zeros(3)), tmp_path / "out")
    with pytest.raises(ShapeError, match="z0"):
        mb.export_two_rates(changed(z0=np.zeros(3)), tmp_path / "out")
    for values in ({"latest": 0.0}, {"latest": np.nan}):
        with pytest.raises(ProblemError, match="latest"):
            mb.export_two_rates(two_rates(), tmp_path / "out", **values)
    with pytest.raises(ProblemError, match="delay"):
        mb.export_two_rates(changed(delay=-1), tmp_path / "out")


def test_the_c_has_no_warning_and_allocates_and_prints_nothing(one):
    called = set()
    for source in one.folder.glob("*.c"):
        target = one.folder / f"{source.stem}.o"
        command = [*find_compiler(), *WARNINGS, "-Wno-unused-parameter", "-O2", "-c", str(source)]
        done = subprocess.run([*command, "-o", target], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if shutil.which("nm") and source.stem != "main":
            listing = subprocess.run(["nm", "-u", target], capture_output=True, text=True).stdout
            called |= {line.split()[-1].removeprefix("_") for line in listing.splitlines()}
        target.unlink()
    assert called or not shutil.which("nm")
    assert not {name.split("@")[0] for name in called} & NO_OUTPUT


def test_other_compilers_have_the_atomics_of_c11_or_one_thread(one, tmp_path):
    """The same C with its first way taken away, GCC's own atomics."""
    text, first = (one.folder / "hand.c").read_text(), "#if defined(__GNUC__)\ntypedef int mailbox;"
    assert first in text
    source = tmp_path / "hand.c"
    source.write_text(text.replace(first, "#if 0\ntypedef int mailbox;"))
    for flags, accepted in (
        (["-std=c11"], True), (["-std=c99", "-DHAND_ONE_THREAD"], True), (["-std=c99"], False),
    ):  # fmt: skip
        command = [*find_compiler(), *flags, "-fsyntax-only", str(source), f"-I{one.folder}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode == 0) == accepted, done.stderr
    assert "define HAND_ONE_THREAD" in done.stderr
