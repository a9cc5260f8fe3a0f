"""The program of the guide on TOML files runs the file that `init` writes."""

from support.pages import assert_prints_what_it_says

from mbcasadi import models
from mbcasadi.validation.spec import propose_spec


def test_a_program_runs_the_controller_of_a_file(tmp_path, monkeypatch):
    text = propose_spec(models.path("four_bar"))
    (tmp_path / "spec.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = assert_prints_what_it_says("guides/spec.md", 1, first="## From Python")
    assert names["report"].runs[0].recording.t[-1] > 0.49
