"""Logs of supervised ticks, computed again: the same bits, and a failure where one is another."""

import ctypes
import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from codegen_problems import saturated_controller
from test_supervised_ticks import TICKS, pd, problem, supervised_project, wild_inputs
from typer.testing import CliRunner

import mbcasadi as mb
from mbcasadi import codegen
from mbcasadi.cli.app import app
from mbcasadi.codegen import InputLimits, Supervision, TickEvent
from mbcasadi.codegen.calls import pointer
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.supervision.layout import header_type
from mbcasadi.codegen.supervision.tick_log import parse, records_type, sums_of, without_state
from mbcasadi.errors import ExportError, ProblemError
from mbcasadi.validation.report.replay_page import replay_page

HEAD = header_type().itemsize
NAMES = ("law", "quadruped", "two phases", "by hand")
LOGGED = 400  # fewer than the ticks, so that the ring turns


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """Return the export of a problem and a log of its last ticks, made once."""
    made = {}

    def of(name, real="double"):
        if (name, real) not in made:
            folder = tmp_path_factory.mktemp("log")
            *_, project = supervised_project(name, folder / "c", real)
            made[name, real] = project, run(project, name, folder / "ticks.log")
        return made[name, real]

    return of


def run(project, name, file):
    _, start, limits, _ = problem(name)
    running = project.supervised(log_ticks=LOGGED)
    rng = np.random.default_rng(2)
    for inputs, sample, action in wild_inputs(start, limits, TICKS, seed=4):
        if rng.random() < 0.3:
            inputs.pop("mask", None)  # a null pointer, which means all on
        if action == "start":
            running.start(rng.uniform(-1, 1, running.control.size))
        elif action == "reset":
            running.reset()
        if name == "two phases" and rng.random() < 0.7:
            if rng.random() < 0.9:
                running.prepare({"ref": inputs["ref"]})
            running.feedback(inputs, sample)
        else:
            running.step(inputs, sample)
    running.save_log(file)
    return file


@pytest.mark.parametrize(
    ("name", "real"),
    [*((name, "double") for name in NAMES), ("law", "float"), ("two phases", "float")],
)
@pytest.mark.every(2)
def test_the_same_library_computes_the_same_bits(logged, name, real):
    project, file = logged(name, real)
    result = project.replay(file)
    assert result.passed
    assert result.tolerance == 0.0
    assert result.is_equal.all()
    assert result.interruptions > 0
    log = result.log
    np.testing.assert_array_equal(log.ticks, np.arange(TICKS - LOGGED, TICKS) + 1)
    np.testing.assert_array_equal(log.outputs["u"], result.outputs["u"])
    counts = log.event_counts()
    assert {"NOT_FINITE", "FADING", "SAFE"} <= set(counts)
    assert sum(fault != "" for fault in log.faults) >= counts["NOT_FINITE"]


def with_sums(data, kind, place):
    """Return a log whose record has the sums of its bytes: as if the C had written it so."""
    record = np.frombuffer(data, kind, LOGGED, HEAD)[place : place + 1].copy()
    words = record.view("u4")[: kind.fields["end"][1] // 4].reshape(1, -1)
    for name, total in zip(("first_sum", "second_sum"), sums_of(words), strict=True):
        record[name] = total
    start = HEAD + place * kind.itemsize
    return bytes(data[:start]) + record.tobytes() + bytes(data[start + kind.itemsize :])


@pytest.mark.parametrize(
    "field", ["in", "out", "before.z", "before.last", "before.offset", "before.accepted"]
)
def test_one_other_bit_is_seen(logged, field, tmp_path):
    project, file = logged("law")
    kind = records_type(project.manifest)
    data = bytearray(file.read_bytes())
    records = np.frombuffer(data, kind, LOGGED, HEAD)
    place = next(k for k, r in enumerate(records) if r["events"] == TickEvent.FADING and k > 50)
    record = records[place].copy()
    del records  # it would keep the bytes from being changed
    finite = int(np.flatnonzero(np.isfinite(record[field]))[0])
    data[HEAD + place * kind.itemsize + kind.fields[field][1] + 8 * finite + 3] ^= 4
    data = with_sums(data, kind, place)
    (tmp_path / "other.log").write_bytes(data)
    result = project.replay(tmp_path / "other.log")
    assert not result.passed
    assert len(result.failures) <= 2
    assert "not as before, first tick" in result.sentence()
    assert re.search("outputs|the state ", result.first_difference)


@pytest.mark.long
def test_another_library_agrees_to_a_tolerance(logged, tmp_path):
    """Without vectors sums have another order; the build's name says so."""
    project, file = logged("quadruped")
    library = project.build(flags=("-O0", "-ffp-contract=off", "-DQUADRUPED_SCALAR")).path
    result = project.replay(file, library=library)
    assert "scalar" in result.build
    assert "scalar" not in result.log.build
    assert result.tolerance == 1e-6
    assert result.passed
    assert not result.is_equal.all()
    assert 0 < result.differences["u"] < 1e-4
    assert result.interruptions == project.replay(file).interruptions
    strict = project.replay(file, library=library, tolerance=0.0)
    assert not strict.passed
    assert strict.first_difference


def test_a_limit_of_iterations_set_at_run_time_is_part_of_the_log(logged, tmp_path):
    project, _ = logged("quadruped")
    start = problem("quadruped")[1]
    running = project.supervised(log_ticks=20)
    running.library.quadruped_supervised_law.restype = ctypes.c_void_p
    law = running.library.quadruped_supervised_law(pointer(running.block))
    rng, statuses = np.random.default_rng(0), []
    for k in range(30):
        limit = 0 if 8 <= k < 14 else 500
        running.library.quadruped_limit_iterations(ctypes.c_void_p(law), limit)
        mask = np.array([1.0, 1, 1, 1]) if k % 2 else np.array([1.0, 0, 0, 1])
        inputs = start | {"mask": mask, "v": rng.standard_normal(18)}
        statuses.append(int(running.step(inputs)["status"][0]))
    assert 5 in statuses[8:14]
    assert 5 not in statuses[:8]
    running.save_log(tmp_path / "l.log")
    result = project.replay(tmp_path / "l.log")
    assert result.passed
    assert 5 in result.log.codes
    assert result.interruptions >= 1


def test_a_breakdown_at_the_beginning_of_the_ring_repeats_the_control_before_it(tmp_path):
    """Of a law by hand the memory keeps the last control, which the log keeps too."""
    base = saturated_controller("root")
    q, v, z = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("z", 1)
    names, outputs = ["q", "v", "z"], ["u", "z_next", "status"]
    law = ca.Function("law", [q, v, z], [ca.sqrt(q) + 0.1 * v, z + 1, 0], names, outputs)
    controller, late = dataclasses.replace(base, function=law), Supervision(trip_after=50)
    project = codegen.export_c(controller, tmp_path / "c", supervision=late)
    running = project.supervised(log_ticks=4)
    first = running.step({"q": [4.0, 1.0], "v": [0, 0]})["u"]
    for _ in range(5):
        u = running.step({"q": [-1.0, 1.0], "v": [0, 0]})["u"]
    np.testing.assert_array_equal(u, first)
    assert running.events == TickEvent.FAILED_TICK
    running.save_log(tmp_path / "l.log")
    result = project.replay(tmp_path / "l.log")
    assert result.passed
    np.testing.assert_array_equal(result.outputs["u"], np.tile(first, (4, 1)))


def changed(data, kind, place, field, value):
    """Return a log in which a record has another first entry of a field."""
    data = bytearray(data)
    np.frombuffer(data, kind, LOGGED, HEAD)[field][place, 0] = value
    return bytes(data)


def test_a_record_that_is_being_written_is_left_out(logged, tmp_path):
    """The oldest place has begun with the tick behind the header's last one."""
    project, file = logged("law")
    kind, data = records_type(project.manifest), file.read_bytes()
    following = int(np.frombuffer(data, header_type(), 1)["next"][0])
    (tmp_path / "torn.log").write_bytes(changed(data, kind, following, "begin", TICKS + 1))
    result = project.replay(tmp_path / "torn.log")
    assert result.passed
    assert (result.log.torn, result.log.damaged) == (1, 0)
    np.testing.assert_array_equal(result.log.ticks, np.arange(TICKS - LOGGED + 1, TICKS) + 1)
    (tmp_path / "other.log").write_bytes(changed(data, kind, following, "end", 0))
    assert not project.replay(tmp_path / "other.log").passed  # no tick begins with an old number


def test_a_log_with_any_other_byte_is_not_equal(logged, tmp_path):
    """In its header, in records that are compared and in what nothing reads."""
    project, file = logged("law")
    data, kind = file.read_bytes(), records_type(project.manifest)
    rng, newest = np.random.default_rng(7), int(np.frombuffer(data, "u4", 5)[4]) - 1
    record = HEAD + newest % LOGGED * kind.itemsize
    places = [*range(0, HEAD, 3), *rng.integers(HEAD, len(data), 40)]
    places += [*range(record + kind.fields["begin"][1], record + kind.itemsize)]
    for place in places:
        altered = bytearray(data)
        altered[place] ^= 1 << int(rng.integers(8))
        try:
            raw = parse(project.manifest, bytes(altered), "it")
        except ExportError:
            continue
        assert raw.damaged, place
    (tmp_path / "last.log").write_bytes(altered)
    result = project.replay(tmp_path / "last.log")
    assert not result.passed
    assert "1 of 400 records are not as they were written" in result.sentence()


COPIES = """\
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "crank_supervised.h"
enum { RECORDS = 4, COPIED = 2000 };
static double memory[CRANK_SUPERVISED_DOUBLES], log_memory[CRANK_LOG_BYTES(RECORDS) / 8];
static double copy[CRANK_LOG_BYTES(RECORDS) / 8];
static volatile int stop;
static volatile unsigned ticks;
static void *run(void *unused) {
  double q[@nq@] = {0}, v[@nv@] = {0};
  unsigned k;
  for (k = 0; !stop; ++k) {
    int i;
    for (i = 0; i < @nv@; ++i) v[i] = 1e-3 * (k % 1000);
    crank_supervised_step(memory, log_memory, k, q, v@nulls@);
    ticks = k;
  }
  return unused;
}
int main(void) {
  pthread_t thread;
  int k;
  crank_supervised_init(memory, sizeof memory);
  crank_log_init(log_memory, sizeof log_memory);
  pthread_create(&thread, 0, run, 0);
  while (ticks < RECORDS) sched_yield();
  for (k = 0; k < COPIED; ++k) {
    const unsigned before = ticks;
    memcpy(copy, log_memory, sizeof copy);
    while (ticks == before) sched_yield();  /* on one core, too, the other thread goes on */
    fwrite(copy, sizeof copy, 1, stdout);
  }
  stop = 1;
  return pthread_join(thread, 0);
}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="threads of POSIX")
@pytest.mark.long
def test_copies_of_another_thread_have_no_mixed_record(tmp_path):
    """Each whole record has the velocity and the sample of its own tick."""
    law = mb.control.laws.computed_torque(
        mb.read_mjcf(mb.models.path("four_bar")), mb.control.PostureTask(("crank",))
    )
    project = codegen.export_c(law, tmp_path / "c", name="crank", supervision=Supervision())
    sizes = {signal["name"]: signal["size"] for signal in project.manifest["inputs"]}
    signals = without_state(project.manifest["inputs"] + project.manifest["outputs"])
    nulls = ", 0" * (len(signals) - 2)
    text = COPIES.replace("@nq@", str(sizes["q"])).replace("@nv@", str(sizes["v"]))
    (project.folder / "copies.c").write_text(text.replace("@nulls@", nulls))
    command = [*find_compiler(), "-std=c99", "-O2", "copies.c", "crank.c", "crank_supervised.c"]
    command += ["-lm", "-pthread", "-o", "copies"]
    subprocess.run(command, cwd=project.folder, check=True)
    ran = subprocess.run([project.folder / "copies"], capture_output=True, check=True, timeout=60)
    size = HEAD + 4 * records_type(project.manifest).itemsize
    whole = 0
    for start in range(0, len(ran.stdout), size):
        data = ran.stdout[start : start + size]
        try:
            raw = parse(project.manifest, data, "a copy")
        except ExportError as error:
            assert "copy the log again" in str(error)  # noqa: PT017
            continue
        rows, first = raw.records, sizes["q"]
        speed = rows["in"][:, first : first + sizes["v"]]
        assert (speed == 1e-3 * (rows["sample"] % 1000)).all()
        assert (rows["sample"] == rows["begin"] - 1).all()
        whole += rows.size
    assert whole > 100


def test_memory_that_is_no_log_is_left_alone(tmp_path):
    *_, project = supervised_project("law", tmp_path / "c")
    start = problem("law")[1]
    running, without = project.supervised(log_ticks=3), project.supervised()
    running.log_block[:] = 0.0
    for _ in range(3):
        np.testing.assert_array_equal(running.step(start)["u"], without.step(start)["u"])
    assert not running.log_block.any()
    with pytest.raises(ExportError, match="there is no log"):
        without.log()


def test_what_is_no_log_of_this_export_is_refused(logged, tmp_path):
    project, file = logged("law")
    other, _ = logged("by hand")
    data, bad = file.read_bytes(), tmp_path / "bad.log"
    for content, message in (
        (b"", "is no log of mbcasadi"),
        (b"text" * 100, "is no log of mbcasadi"),
        (data[3::-1] + data[4:], "another order of bytes"),
        (data[:-3000], "copy all of the log's memory"),
    ):
        bad.write_bytes(content)
        with pytest.raises(ExportError, match=message):
            project.replay(bad)
    with pytest.raises(ExportError, match="written by an export with the signature"):
        other.replay(file)
    changed = codegen.export_c(
        pd("pd1", 1.0), tmp_path / "one", supervision=Supervision()
    ).supervised(log_ticks=3)
    changed.step({"q": [0.1], "v": [0.0]})
    changed.save_log(bad)
    second = codegen.export_c(pd("pd1", 2.0), tmp_path / "two", supervision=Supervision())
    with pytest.raises(ExportError, match="written by an export with the code"):
        second.replay(bad)
    with pytest.raises(ExportError, match=r"cannot read .*: No such file"):
        project.replay(tmp_path / "none.log")
    with pytest.raises(ExportError, match="cannot load"):
        project.replay(file, library=file)
    with pytest.raises(ExportError, match="is no library of this export"):
        project.replay(file, library=other.build().path)
    with pytest.raises(ProblemError, match="tolerance is -1"):
        project.replay(file, tolerance=-1.0)
    bare = codegen.export_c(pd("bare", 1.0), tmp_path / "bare")
    with pytest.raises(ExportError, match="bare has no supervision; export with supervision="):
        bare.supervised()


def test_the_command_replays_an_export_that_was_moved(logged, tmp_path):
    project, file = logged("two phases")
    folder = tmp_path / "moved"
    shutil.copytree(project.folder, folder)
    page, data = tmp_path / "page.html", tmp_path / "result.json"
    done = CliRunner().invoke(app, ["replay", str(folder), str(file), "--report", str(page), "-q"])
    assert done.exit_code == 0, done.output
    assert f"all {LOGGED} ticks are equal bit for bit" in done.output
    assert "TRIPPED" in done.output
    text = page.read_text()
    assert "passed" in text
    assert text.count("<svg") >= 4
    assert "http" not in text.replace("http://www.w3.org", "")
    done = CliRunner().invoke(app, ["replay", str(folder), str(file), "--json", "-q"])
    result = json.loads(done.output)
    assert result["passed"]
    assert result["ticks"] == LOGGED
    assert result["logged_by"] == result["replayed_by"]
    content = bytearray(file.read_bytes())
    kind = records_type(project.manifest)
    content[HEAD + kind.fields["out"][1] + 3] ^= 1
    wrong = tmp_path / "wrong.log"
    wrong.write_bytes(with_sums(content, kind, 0))
    done = CliRunner().invoke(app, ["replay", str(folder), str(wrong), "--report", str(data), "-q"])
    assert done.exit_code == 1
    assert json.loads(data.read_text())["failures"]
    done = CliRunner().invoke(app, ["replay", str(folder), str(Path(__file__))])
    assert done.exit_code == 2
    assert "is no log of mbcasadi" in done.output


def test_names_of_a_model_are_text_in_the_page(tmp_path):
    hostile = "<script>alert(1)</script>"
    base = saturated_controller("pd")
    inputs = tuple(
        dataclasses.replace(s, components=(hostile, "$x$")) if s.name == "q" else s
        for s in base.inputs
    )
    controller = dataclasses.replace(base, inputs=inputs)
    below = Supervision(inputs={"q": InputLimits(upper=1.0)})
    project = codegen.export_c(controller, tmp_path / "c", supervision=below)
    running = project.supervised(log_ticks=3)
    running.step({"q": [2.0, 0.0], "v": [0, 0]})
    assert hostile in running.fault
    empty = project.supervised(log_ticks=3)
    empty.save_log(tmp_path / "empty.log")
    nothing = project.replay(tmp_path / "empty.log")
    assert not nothing.passed
    assert "the log holds no tick" in replay_page(nothing, "empty")
    running.save_log(tmp_path / "l.log")
    page = replay_page(project.replay(tmp_path / "l.log"), hostile)
    assert "<script>" not in page
