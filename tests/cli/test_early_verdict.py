"""`mbcasadi validate` prints its verdict before the C is there."""

import json

import pytest
from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.codegen.background_build import can_build_in_background

pytestmark = pytest.mark.skipif(
    not can_build_in_background(), reason="processes cannot be copied here"
)
RUN = CliRunner()
SPEC = """
type = "inverse_dynamics_qp"
[[task]]
type = "posture"
joints = ["crank"]
kp = 2500.0
[validation]
duration = 0.1
rigid = true
[validation.criteria]
"torque.excess" = 0.0
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "crank.toml"
    path.write_text(SPEC)
    return str(path)


def validated(spec, *options):
    return RUN.invoke(app, ["validate", "four_bar", "-c", spec, *options])


def test_the_verdict_is_printed_before_the_wait_for_the_c(spec):
    result = validated(spec)
    assert result.exit_code == 0, result.output
    verdict = result.output.index("Closed-loop validation: passed")
    assert verdict < result.output.index("waiting for the C")
    assert result.stdout.count("Closed-loop validation") == 1
    assert "gives the Function's controls at the inputs of all" in result.stdout


def test_json_comes_as_a_whole_and_has_the_criterion_of_the_c(spec):
    result = validated(spec, "--json", "--quiet")
    (run,) = json.loads(result.stdout)["runs"]
    assert run["criteria"][-1]["metric"] == "same_in_c"
    assert run["metrics"]["time.median"]["value"] > 0


def test_the_whole_table_is_printed_again_where_the_c_changes_the_verdict(spec, monkeypatch):
    monkeypatch.setattr("mbcasadi.validation.run.c_afterwards.SAME", -1.0)
    result = validated(spec)
    assert result.exit_code == 1
    assert result.stdout.count("Closed-loop validation") == 2
    assert "the C gives the same controls" in result.stdout


def test_compile_first_runs_the_c_from_the_first_tick(spec):
    result = validated(spec, "--compile-first", "--json", "--quiet")
    (run,) = json.loads(result.stdout)["runs"]
    assert run["settings"]["what ran"] == "the generated C"
