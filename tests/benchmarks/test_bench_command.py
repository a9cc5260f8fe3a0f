"""`python -m bench` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import typer
from typer.testing import CliRunner

import bench as suites
from bench.__main__ import bench


def invoke(*arguments):
    app = typer.Typer()
    app.command()(bench)
    return CliRunner().invoke(app, arguments)


def test_the_suites_that_exist_run_and_others_are_named(tmp_path, monkeypatch):
    (tmp_path / "qp.py").write_text(
        "def run(quick=False):\n"
        "    row = dict(model='m', quantity='tick', ours=3.5e-6, peer='other (absent)')\n"
        "    return {'rows': [row | dict(peer_time=None, ratio=None)]}\n"
    )
    monkeypatch.setattr(suites, "__path__", [str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "bench.qp", raising=False)
    result = invoke("qp", "--quick", "--json")
    assert json.loads(result.stdout)["rows"][0]["peer"] == "other (absent)"
    shown = invoke("qp", "--quick").stdout
    assert "ours, us" in shown
    assert " 3.5 " in shown
    assert "absent" in invoke().stdout
    unknown = invoke("speed")
    assert unknown.exit_code == 2
    assert all(word in unknown.stderr for word in ("speed", "qp"))
    (tmp_path / "tick.py").write_text(
        "from mbcasadi.errors import SolverError\n"
        "def run(quick=False):\n    raise SolverError('it did not solve a tick')\n"
    )
    monkeypatch.delitem(__import__("sys").modules, "bench.tick", raising=False)
    both = invoke("tick", "qp", "--json")
    assert json.loads(both.stdout)["rows"][0]["peer"] == "other (absent)"
    assert (both.exit_code, "benchmark tick: it did not solve a tick" in both.stderr) == (2, True)


def test_the_module_runs_from_the_root_of_a_checkout():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "bench", "--help"]
    done = subprocess.run(command, cwd=root, check=True, text=True, capture_output=True)
    assert "tick" in done.stdout
