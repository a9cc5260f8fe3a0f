"""The Python of README.md runs as printed."""

import re
from pathlib import Path

import casadi as ca

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_code_of_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = {"q": 19, "v": 18, "u": 12}  # of its quadruped
    names = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert (tmp_path / "stand" / "manifest.json").is_file()
    assert names["a"].shape == (18, 1)
    assert names["solution"].solved
    assert "[" in capsys.readouterr().out
