"""The benchmark of derivatives returns what `mbcasadi bench` prints; no time is judged."""

import numpy as np

from mbcasadi.benchmarks import derivatives


def test_a_case_gives_rows_operations_and_what_the_compiler_took(monkeypatch):
    monkeypatch.delenv(derivatives.ROBOTS, raising=False)
    monkeypatch.setattr(derivatives, "FLAGS", ("-O0",))
    results = derivatives.run(quick=True)
    quantities = [(row["model"], row["quantity"]) for row in results["rows"]]
    free, held = "quadruped, nv 18, nc 0", "quadruped on four feet, nv 18, nc 12"
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
    (tmp_path / "maker__go2__go2.xml").write_text("<mujoco/>")
    monkeypatch.setenv(derivatives.ROBOTS, str(tmp_path))
    names = [case.name for case in derivatives.default_cases()]
    assert names[-2:] == ["Go2", "Go2 on four feet"]


def test_feet_are_held_at_their_points():
    system = derivatives.default_cases()[1].system()
    A = system.constraint_jacobian(system.tree.q0).full()
    assert A.shape == (12, 18)
    assert np.linalg.matrix_rank(A) == 12
