"""`mbcasadi cache`: what is kept, where, and its removal."""

import json

from typer.testing import CliRunner

from mbcasadi.cli.app import app
from mbcasadi.codegen.cache import store


def test_the_cache_is_described_found_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("MBCASADI_CACHE", str(tmp_path))
    store.write("one", b"some bytes")

    def output(*words):
        result = CliRunner().invoke(app, ["cache", *words])
        assert result.exit_code == 0, result.output
        return result.output.strip()

    assert output("path") == str(tmp_path)
    assert output("info").startswith(f"{tmp_path}: 1 entries, ")
    found = json.loads(output("info", "--json"))
    assert (found["entries"], found["limit"]) == (1, 2 * 1024**3)
    assert output("clear") == "entries removed: 1"
    assert json.loads(output("clear", "--json")) == {"removed": 0}
    monkeypatch.setenv("MBCASADI_CACHE", "off")
    assert output("path") == ""
    assert output("info") == "no cache (MBCASADI_CACHE=off)"
