"""A folder of models against MuJoCo, whatever is in it."""

import json
import os
import sys

import pytest
from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.errors import ModelError
from mbcasadi.validation.agreement import Agreement, CorpusReport, CorpusRow, check_corpus
from mbcasadi.validation.agreement.corpus.corpus import COMPARING, COMPILING, _broken_row
from mbcasadi.validation.agreement.corpus.files import corpus_files
from mbcasadi.validation.agreement.corpus.isolated import BrokenOff, run_isolated
from mbcasadi.validation.agreement.corpus.report import outcome_of, reason_of
from mbcasadi.validation.report import plain_data

ROD = """<body name="rod"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.1 0 -0.5" size="0.02"/></body>"""
GOOD = f"<mujoco><worldbody>{ROD}</worldbody></mujoco>"
MEDIUM = '<option density="-1" viscosity="1"/><worldbody>'
FILES = {
    "good.xml": GOOD,
    "robots/scene.xml": """<mujoco><include file="arm.xml"/>
        <include file="deep/floor.xml"/></mujoco>""",
    "robots/arm.xml": GOOD,
    "robots/deep/floor.xml": '<mujocoinclude><include file="deep/sky.xml"/></mujocoinclude>',
    "robots/deep/sky.xml": "<mujoco><visual/></mujoco>",
    "lonely_part.xml": f"<mujocoinclude>{ROD}</mujocoinclude>",
    "robots/arm.urdf": """<?xml version="1.0"?><robot name="arm"><link name="base"/>
        <link name="rod">
        <inertial><mass value="1"/><inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/>
        </inertial></link><joint name="turn" type="continuous"><parent link="base"/>
        <child link="rod"/><axis xyz="0 1 0"/></joint></robot>""",
    "negative_medium.xml": GOOD.replace("<worldbody>", MEDIUM, 1),
    "still.xml": '<mujoco><worldbody><geom size="1"/></worldbody></mujoco>',
    "broken.xml": "<!-- cut off --><mujoco><worldbody>",
    "mesh.xml": GOOD.replace("<worldbody>", '<asset><mesh file="no.stl"/></asset><worldbody>', 1),
    "table.xml": "<data><mujoco/></data>",
    "broken_table.xml": "<data><x>",
    "readme.txt": GOOD,
}
EXPECTED = {
    "broken.xml": "unreadable",
    "good.xml": "exact",
    "mesh.xml": "unreadable",
    "negative_medium.xml": "refused",
    "robots/arm.urdf": "exact",
    "robots/scene.xml": "exact",
    "still.xml": "nothing moves",
}
HUGE = GOOD.replace("<worldbody>", '<worldbody><replicate count="20000">', 1).replace(
    "</worldbody>", "</replicate></worldbody>"
)
"""A short text that MuJoCo's compiler works on for minutes."""


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("corpus"), FILES)


@pytest.fixture(scope="module")
def report(folder):
    return check_corpus(folder, jobs=1, states=1)


def test_each_model_has_one_row_with_its_verdict(report):
    assert {row.model: row.outcome for row in report.rows} == EXPECTED
    assert report.passed
    assert report.counts["exact"] == 3
    reasons = {row.model: row.reason for row in report.rows}
    assert "option: density" in reasons["negative_medium.xml"]
    assert "no.stl" in reasons["mesh.xml"]
    assert "XML" in reasons["broken.xml"]
    exact = next(row for row in report.rows if row.model == "good.xml")
    assert (exact.nv, exact.refused, exact.reason) == (1, (), "")
    assert exact.compared > 10
    assert exact.error < 1e-11


def test_files_that_others_include_are_parts_and_no_models(report):
    assert report.parts == {
        "lonely_part.xml": "",
        "robots/arm.xml": "robots/scene.xml",
        "robots/deep/floor.xml": "robots/scene.xml",
        "robots/deep/sky.xml": "robots/scene.xml",
    }


def test_a_folder_without_models_is_named(tmp_path):
    (tmp_path / "table.xml").write_text("<data/>")
    with pytest.raises(ModelError, match=f"no model in '{tmp_path}'"):
        check_corpus(tmp_path)
    with pytest.raises(ModelError, match="no folder"):
        check_corpus(tmp_path / "absent")


def test_files_that_include_each_other_do_not_hang_the_search(tmp_path):
    one, two = (f'<mujoco><include file="{x}.xml"/></mujoco>' for x in ("two", "one"))
    write(tmp_path, {"one.xml": one, "two.xml": two, "good.xml": GOOD})
    assert [path.name for path in corpus_files(tmp_path).models] == ["good.xml"]


@pytest.mark.long
def test_a_model_on_which_the_compiler_hangs_is_a_line(tmp_path):
    write(tmp_path, {"a_huge.xml": HUGE, "good.xml": GOOD})
    report = check_corpus(tmp_path, jobs=1, states=1, timeout=2.0)
    row = report.rows[0]
    assert (row.model, row.outcome) == ("a_huge.xml", "unreadable")
    assert row.reason == "MuJoCo's compiler: not finished after 2 s"
    assert row.seconds >= 2.0
    assert report.rows[1].model == "good.xml"


def behave(how, enter):
    """Stand for a comparison that ends as it is told."""
    enter("trying")
    if how == "raise":
        raise ValueError("no such thing")
    if how == "abort":
        print("about to abort", file=sys.stderr, flush=True)
        os.abort()
    return how


def test_tasks_that_die_or_raise_end_alone():
    tasks = [("one",), ("raise",), ("abort",), ("two",)]
    results = dict(run_isolated(behave, tasks, 1, timeout=60.0))
    assert [results[i] for i in (0, 3)] == ["one", "two"]
    raised, died = results[1], results[2]
    assert "ValueError: no such thing" in raised.reason
    assert "about to abort" in died.reason
    assert {r.stage for r in (raised, died)} == {"trying"}
    assert not raised.timed_out
    assert not died.timed_out


@pytest.mark.parametrize(
    ("stage", "timed_out", "outcome"),
    [
        (COMPILING, True, "unreadable"),
        (COMPILING, False, "unreadable"),
        (COMPARING, True, "timed out"),
        (COMPARING, False, "failed"),
    ],
)
def test_a_crash_of_ours_is_wrong_and_one_of_the_compiler_is_not(
    stage, timed_out, outcome, tmp_path
):
    path = tmp_path / "good.xml"
    path.write_text(GOOD)
    row = _broken_row(path, "good.xml", BrokenOff(stage, timed_out, "why", 1.0))
    assert (row.outcome, row.reason) == (outcome, f"{stage}: why")
    report = CorpusReport("x", (row, CorpusRow("y", "MJCF", "exact", compared=1)), {}, 1e-9, 1, {})
    assert report.passed == (outcome != "failed")


NAN = float("nan")


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ({"mass_matrix": 1e-12, "actuator_force": 1e-13}, "exact"),
        ({"mass_matrix": 1e-12, "actuator_force": NAN}, "exact but for"),
        ({"mass_matrix": 1e-12, "constraint": NAN}, "refused"),
        ({"mass_matrix": 1e-3, "actuator_force": NAN}, "different"),
        ({"mass_matrix": float("inf")}, "different"),
        ({"actuator_force": NAN}, "refused"),
    ],
)
def test_the_verdict_follows_from_the_entries(errors, outcome):
    entries = [Agreement(name, error, 0, "N", f"{name}: why") for name, error in errors.items()]
    assert outcome_of(entries, 1e-9) == outcome


def test_reasons_are_joined_where_they_are_the_same():
    entries = [
        Agreement("actuator_force", NAN, 0, "N", "actuator_force: plugin 'pid'"),
        Agreement("act_dot", NAN, 0, "N", "act_dot: plugin 'pid'"),
        Agreement("mass_matrix", 1e-12, 0, "kg"),
    ]
    assert reason_of(entries, 1e-9) == "actuator_force, act_dot: plugin 'pid'"
    worse = [
        *entries,
        Agreement("bias_force", 0.5, 0, "N"),
        Agreement("passive_force", 2.0, 0, "N"),
    ]
    assert reason_of(worse, 1e-9) == "passive_force by 2, bias_force by 0.5"


def test_the_command_prints_the_same_as_json_and_markdown_in_two_processes(
    folder, tmp_path, report
):
    page = tmp_path / "models.md"
    arguments = ["check", "--corpus", str(folder), "--jobs", "2", "--states", "1"]
    result = CliRunner().invoke(app, [*arguments, "--json", "--markdown", str(page)])
    assert result.exit_code == 0
    assert "arm.urdf: exact" in result.stderr  # progress, beside the JSON of stdout
    data, own = json.loads(result.stdout), plain_data(report.to_dict())
    for row in (*data["rows"], *own["rows"]):
        del row["seconds"]
    assert data == own
    text = page.read_text(encoding="utf-8")
    assert "| exact | 3 |" in text
    assert "| `robots/arm.urdf` | exact | 1 | 0 | 0 |" in text
    assert "## Unreadable" in text


def test_the_command_fails_where_a_model_differs(tmp_path):
    write(tmp_path, {"good.xml": GOOD})
    command = ["check", "--corpus", str(tmp_path), "--tolerance", "1e-30", "--states", "1"]
    result = CliRunner().invoke(app, [*command, "--markdown", str(tmp_path / "models.md")])
    assert result.exit_code == 1
    assert "1 of 1: good.xml: different" in result.stderr
    assert "not passed: wrong: good.xml" in result.stdout
    assert f"report: {tmp_path / 'models.md'}" in result.stdout
    assert "different" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a model, or --corpus"),
        (["four_bar", "--corpus", "."], "takes no model"),
        (["four_bar", "--jobs", "2"], "are for --corpus"),
        (["--corpus", ".", "--markdown", "page.html"], "ends with .md"),
        (["--corpus", "no_such_folder"], "no folder"),
    ],
)
def test_wrong_arguments_have_a_message(arguments, message):
    result = CliRunner().invoke(app, ["check", *arguments])
    assert result.exit_code == 2
    assert message in result.output
