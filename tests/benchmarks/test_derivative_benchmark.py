"""The benchmark of derivatives returns what `mbcasadi bench` prints; no time is judged."""

from mbcasadi.benchmarks import derivatives, robots


def test_a_case_gives_rows_operations_and_what_the_compiler_took(monkeypatch):
    monkeypatch.delenv(robots.FOLDER, raising=False)
    monkeypatch.setattr(derivatives, "FLAGS", ("-O0",))
    results = derivatives.run(quick=True)
    quantities = [(row["model"], row["quantity"]) for row in results["rows"]]
    free, held = "quadruped, free, nv 18, nc 0", "quadruped on four feet, nv 18, nc 12"
    assert quantities == [
        (free, "derivatives of inverse dynamics"),
        (free, "derivatives of forward dynamics"),
        (held, "derivatives of forward dynamics"),
    ]
    for row in results["rows"]:
        assert set(row) == {"model", "quantity", "ours", "peer", "peer_time", "ratio"}
        assert row["ours"] > 0
        key = f"{row['model']}: {row['quantity']}"
        assert 1_000 < results["operations"][key] < 100_000
        assert results["compiler"][key].endswith("MB")


def test_robots_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    (tmp_path / "men__unitree_go2__go2.xml").write_text("<mujoco/>")
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    names = [case.name for case in derivatives.default_cases()]
    assert names[-2:] == ["Go2, free", "Go2 on four feet"]
