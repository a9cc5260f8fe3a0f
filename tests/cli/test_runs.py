"""`mbcasadi export`, `validate`, `campaign` and `demo` as a user runs them."""

import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.codegen import open_project
from mbcasadi.validation.spec import read_spec

RUN = CliRunner()
CRANK = """
type = "inverse_dynamics_qp"
name = "crank_control"
[[task]]
type = "posture"
joints = ["crank"]
kp = 2500.0
[task.reference]
crank = { amplitude = 40, unit = "deg", frequency = 1.0, ramp = 0.2 }
[validation]
duration = 0.5
rigid = true
[validation.criteria]
"tracking.rms_share" = 0.01
"torque.excess" = 0.0
"closure.plant" = 1e-4
"""


@pytest.fixture
def crank(tmp_path):
    path = tmp_path / "crank.toml"
    path.write_text(CRANK)
    return path


def invoke(*arguments):
    return RUN.invoke(app, [str(argument) for argument in arguments])


def one_line(result, *words):
    """Check that a command refused its input with one line that holds `words`."""
    assert result.exit_code == 2, result.output
    assert result.stderr.strip().splitlines()[-1].startswith("mbcasadi: ")
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr


def test_validate_runs_the_c_in_mujoco_and_writes_the_report(crank, tmp_path):
    report = tmp_path / "report.html"
    result = invoke("validate", "four_bar", "--controller", crank, "--report", report, "--json")
    assert result.exit_code == 0, result.output
    run = json.loads(result.stdout)["runs"][0]
    assert {c["metric"] for c in run["criteria"]} >= {"finished", "closure.plant"}
    assert run["metrics"]["status.solved"]["value"] == 1.0
    assert "<html" in report.read_text()


def test_validate_leaves_with_one_where_a_criterion_fails(crank):
    crank.write_text(CRANK.replace('"closure.plant" = 1e-4', '"tracking.max" = 1e-12'))
    result = invoke("validate", "four_bar", "--controller", crank, "--duration", "0.1")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


def test_validate_leaves_with_three_where_nothing_judges_the_run(tmp_path):
    (tmp_path / "idle.py").write_text(
        "import mbcasadi as mb\n"
        "from support.validation_problems import idle_controller\n"
        "def make(system):\n    return idle_controller(mb.models.path('four_bar'))\n"
    )
    spec = tmp_path / "idle.toml"
    spec.write_text('type = "own"\nmake = "idle:make"\n')
    result = invoke(
        "validate", "four_bar", "--controller", spec, "--duration", "0.05", "--allow-code"
    )
    assert result.exit_code == 3, result.output
    assert "not judged" in result.output


def test_validate_passes_the_conditions_of_the_command_line_on(crank):
    """Errors that it does not name are those of the file."""
    table = "[validation]\n"
    crank.write_text(CRANK.replace(table, f"{table}perturb = {{ mass = 0.5, damping = 0.2 }}\n"))
    result = invoke(
        "validate", "four_bar", "-c", crank, "--duration", "0.1", "--delay", "2",
        "--perturb", "mass=0.1", "--no-rigid", "--fast", "--json",
    )  # fmt: skip
    (run,) = json.loads(result.stdout)["runs"]
    settings = run["settings"]
    assert "(fast: the law's Python Function, not its C)" in run["name"]
    assert settings["duration"] == "0.1 s"
    assert settings["delay"] == "2 ticks"
    assert settings["plant's parameter errors"] == "mass +10 %, damping +20 %"
    assert "softness" in settings["plant's equality constraints"]


def test_validate_says_what_delay_and_errors_cost(crank):
    conditions = ("--duration", "0.1", "--delay", "2", "--perturb", "mass=0.1", "--what-if")
    result = invoke("validate", "four_bar", "-c", crank, *conditions, "--fast")
    assert result.stdout.count("fast:") == 1
    for words in ("nominal", "delay only", "model error only", "both", "times the tracking error"):
        assert words in result.stdout


def test_export_writes_what_other_callers_need(crank, tmp_path):
    out = tmp_path / "c"
    crank.write_text(crank.read_text() + "[supervision.inputs.q]\njump = { crank = 0.05 }\n")
    options = ("--mujoco-plugin", "--fmu")
    result = invoke("export", "four_bar", "--controller", crank, "--out", out, *options)
    assert result.exit_code == 0, result.output
    name = "crank_control"
    for file in (".hpp", "_mujoco.c", ".fmu", "_supervised.c", "_supervised.h"):
        assert (out / f"{name}{file}").is_file()
    running = open_project(out).supervised()
    running.step({"q": [0.0, 0.0, 0.0]})
    running.step({"q": [0.1, 0.1, 0.1]})
    assert running.fault == "q[0] crank"


def test_export_prints_operations_lines_and_compile_time(crank, tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", "off")  # another test has compiled the same
    out = tmp_path / "c"
    result = invoke("export", "four_bar", "--controller", crank, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["operations"] > 0
    assert found["lines"] == (out / "crank_control.c").read_bytes().count(b"\n")
    assert found["compile_seconds"] > 0
    assert open_project(out).run_example().endswith("returned 0\n")  # it runs at the file's start
    page = (out / "README.md").read_text(encoding="utf-8")
    assert "| 3 | bad input, safe output |" in page
    assert "tuning" not in page
    (reference,) = found["further"]
    moved = open_project(reference["folder"]).load()(0.35)
    ramp, angle = 1.0, 2 * np.pi * 0.35  # past the ramp of 0.2 s
    assert reference["name"] == "crank_control_reference"
    motion = np.deg2rad(40) * np.array([np.sin(angle), 2 * np.pi * np.cos(angle)])
    np.testing.assert_allclose(np.array(moved).ravel()[:2], motion * ramp, rtol=1e-12)
    one_line(invoke("export", "four_bar", "--controller", crank, "--out", out), str(out))


VALIDATE, CAMPAIGN = "validate four_bar -c FILE", "campaign four_bar -c FILE --runs 4 --jobs 1"
MARGIN = "margin four_bar -c FILE --over disturbance --largest 2"
REFUSED = [
    (f"{VALIDATE} --what-if", "delay or perturb"),
    (f"{VALIDATE} --report GONE/report.html", "cannot write GONE/report.html"),
    (f"{VALIDATE} --report report.pdf", "report.pdf: expected a report file"),
    ("demo --report GONE/report.html", "cannot write GONE/report.html"),
    ("export four_bar -c FILE --out FILE/c", "FILE"),
    ("bench qp --quick", "python -m bench` in the root of a checkout"),
    *((f"{VALIDATE} --perturb {text}", "NAME=NUMBER") for text in ("mass", "mass=much", "=0.1")),
    *(
        (f"{command} --push {text}", f"'{text}': expected BODY=FX,FY,FZ@START:STOP")
        for command in (VALIDATE, CAMPAIGN, MARGIN)
        for text in ("rocker", "rocker=1,2@0:1", "=1,2,3@0:1", "rocker=1,2,3", "rocker=1,2,3@0")
    ),
    (f"{VALIDATE} --push rocker=1,2,x@0:1", "'rocker=1,2,x@0:1': expected BODY"),
    (f"{VALIDATE} --push rocker=1,2,3@0.5:0.1", "0 <= start < stop"),
    (f"{VALIDATE} --push rocker=1,nan,3@0:0.1", "finite numbers"),
    (f"{VALIDATE} --push roker=1,2,3@0:0.1", "unknown body 'roker'; valid: "),
    (f"{VALIDATE} --push rocker=1,2,3@7:8", "after the run, which lasts 0.5 s"),
    (f"{VALIDATE} --duration -1", "duration = -1.0; expected a finite, positive number"),
    (MARGIN, "scale a disturbance, and there is none"),
    (f"{MARGIN} --steps 0", "steps = 0; expected a whole number, at least 1"),
    (f"{CAMPAIGN} --videos 1", "in the page of a campaign: --report "),
    (f"{CAMPAIGN} --video a.mp4", "give its number by --case"),
    (f"{CAMPAIGN} --case 4", "0 to 3"),
    (f"{CAMPAIGN} --range mass=0.2", "LOWEST:HIGHEST"),
    (f"{CAMPAIGN} --delay -1", "delay = -1; expected a whole number, at least 0"),
    *(
        (f"{command.replace('FILE', 'OWN')}{more}", "runs Python code, 'idle:make'; if you trust")
        for command, more in ((VALIDATE, ""), (CAMPAIGN, ""), (MARGIN, ""))
    ),
    ("export four_bar -c OWN --out c", "allow it: --allow-code"),
    (f'{VALIDATE} | "crank" "crnk"', "unknown joint 'crnk'; valid: 'crank'"),
    (f"{VALIDATE} | kp kpp", "task 1 ('posture'): unknown key 'kpp'"),
    (f"{VALIDATE} | torque.excess torqe.excess", "torqe.excess"),
    (f"{VALIDATE} | [[task]] [[task", "is not TOML"),
]
"""Arguments, behind a bar what is changed in the file, and the words of the refusal."""


@pytest.mark.parametrize(("command", "words"), REFUSED)
def test_what_is_wrong_is_one_line(crank, tmp_path, command, words):
    (tmp_path / "own.toml").write_text('type = "own"\nmake = "idle:make"\n')
    command, _, change = command.partition(" | ")
    if change:
        crank.write_text(CRANK.replace(*change.split(), 1))
    places = {"FILE": crank, "OWN": tmp_path / "own.toml", "GONE": tmp_path / "gone"}
    for name, place in places.items():
        command, words = (text.replace(name, str(place)) for text in (command, words))
    one_line(invoke(*command.split()), words)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_refused_before_the_run(crank, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    target = folder / "report.html"
    one_line(invoke("validate", "four_bar", "-c", crank, "--report", target), "cannot write")


def test_a_compiler_that_is_missing_is_one_line(crank, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    one_line(invoke("export", "four_bar", "-c", crank, "--out", tmp_path / "c"), "no-such-compiler")


@pytest.mark.long
def test_pushes_of_the_command_line_act_in_a_run_and_in_a_campaign(crank):
    push = ["--push", "rocker=5,0,0@0.1:0.2", "--push", "crank=0,0,1e-3@0:0.4"]
    run = invoke("validate", "four_bar", "-c", crank, "--json", "--no-explain", *push)
    first = json.loads(run.stdout)["runs"][0]
    assert "(5, 0, 0) N on 'rocker' from 0.1 s to 0.2 s; (0" in first["settings"]["disturbance"]
    many = invoke("campaign", "four_bar", "-c", crank, "--json", "--runs", 1, "--jobs", 1, *push)
    (case,) = json.loads(many.stdout)["cases"]
    assert case["metrics"]["torque.max"] == first["metrics"]["torque.max"]["value"]


def test_a_campaign_runs_one_controller_in_many_plants(crank):
    result = invoke(
        "campaign", "four_bar", "-c", crank, "--runs", "2", "--delay", "0", "--delay", "1",
        "--perturb", "mass=0.05", "--duration", "0.2", "--fast", "--json",
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert [note for note in found["notes"] if "Python Function, not its C" in note]
    assert [(case["seed"], case["delay"]) for case in found["cases"]] == [
        (0, 0), (1, 0), (0, 1), (1, 1),
    ]  # fmt: skip
    assert result.exit_code == (0 if found["passed"] else 1)


def test_a_case_of_a_campaign_runs_again_alone_and_a_file_keeps_what_was_done(crank, tmp_path):
    store, page = tmp_path / "runs.sqlite", tmp_path / "runs.html"
    command = [
        "campaign", "four_bar", "-c", crank, "--runs", "4", "--range", "mass=-0.2:0.2",
        "--range", "start_error=0:0.1", "--design", "latin_hypercube", "--seed", "3",
        "--duration", "0.1", "--jobs", "1",
    ]  # fmt: skip
    first = invoke(*command, "--store", store, "--report", page, "--videos", "1")
    assert "of 4 runs passed" in first.stdout
    written = page.read_text(encoding="utf-8")
    assert "<svg" in written
    assert ("data:video/mp4" in written) != ("no videos: " in first.stderr)
    done = json.loads(invoke(*command, "--store", store, "--json").stdout)
    alone = json.loads(invoke(*command, "--case", "2", "--json").stdout)
    known = alone["runs"][0]["metrics"]
    for name, value in done["cases"][2]["metrics"].items():
        assert known[name]["value"] == value, name
    one_line(invoke(*command[:-2], "--store", store, "--seed", "9"), "another campaign", "cases")


def test_ctrl_c_ends_a_campaign_with_a_line_that_says_how_to_go_on(crank, tmp_path, monkeypatch):
    from mbcasadi.validation import spec

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(spec, "run_campaign", interrupted)
    result = invoke("campaign", "four_bar", "-c", crank, "--store", tmp_path / "runs.sqlite")
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr


def test_the_demo_runs_its_parts_into_one_report(tmp_path, monkeypatch):
    from mbcasadi.validation import demo

    monkeypatch.setattr(demo, "PARTS", demo.PARTS[:1])  # the others take their time to compile
    monkeypatch.setattr(demo, "read_spec", lambda file: read_spec(file).with_trial(duration=1.5))
    monkeypatch.chdir(tmp_path)
    result = invoke("demo", "--no-render")
    assert result.exit_code == 0, result.output
    assert "four_bar: simulating" in result.stderr
    assert demo.PARTS[0].heading.split(",")[0] in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
