"""The Python of README.md runs as printed."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_code_of_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    for folder in ("stand", "stand_by_sensors", "balance"):
        assert (tmp_path / folder / "manifest.json").is_file()
    assert names["report"].passed
    assert (tmp_path / "report.html").is_file()
    assert "[" in capsys.readouterr().out
