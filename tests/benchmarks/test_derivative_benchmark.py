"""The benchmark of derivatives returns what `python -m bench` prints; no time is judged."""

from bench import derivatives, robots


def test_robots_come_from_the_folder_that_is_named(monkeypatch, tmp_path):
    (tmp_path / "men__unitree_go2__go2.xml").write_text("<mujoco/>")
    monkeypatch.setenv(robots.FOLDER, str(tmp_path))
    names = [case.name for case in derivatives.default_cases()]
    assert names[-2:] == ["Go2, free", "Go2 on four feet"]
