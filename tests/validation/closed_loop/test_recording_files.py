"""A recording comes back from its file, and others can read its columns by name."""

import csv
import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest

from mbcasadi import models
from mbcasadi.errors import MissingExtraError, ProblemError
from mbcasadi.validation import Recording, load_recording, save_recording, validate


def push(t, q, v):
    return [0.3 * np.sin(9 * t)]


def rest(t, q, v):
    return np.zeros(12)


FORMATS = [".npz", ".csv", ".h5"]


@pytest.fixture(scope="module")
def recording():
    run = validate(push, models.path("four_bar"), 0.02)
    values = {"target": np.linspace(0, 1 / 3, run.runs[0].recording.ticks)[:, None]}
    return replace(run.runs[0].recording, monitor=values, events=('it, "fell"\nover',))


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_number_comes_back_from_the_file(recording, tmp_path, suffix):
    path = save_recording(recording, tmp_path / f"run{suffix}")
    again = load_recording(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing is left beside it
    for field in fields(Recording):
        if field.name not in {"columns", "monitor"}:
            np.testing.assert_array_equal(
                getattr(again, field.name), getattr(recording, field.name), err_msg=field.name
            )
            assert np.shape(getattr(again, field.name)) == np.shape(getattr(recording, field.name))
    np.testing.assert_array_equal(again.monitor["target"], recording.monitor["target"])
    assert again.columns["q"].names == recording.columns["q"].names
    assert again.columns["u"].units == recording.columns["u"].units == ("N m",)
    if suffix != ".csv":
        assert again.columns["q"] == recording.columns["q"]


def test_names_and_units_are_in_the_heading_of_a_csv(recording, tmp_path):
    with save_recording(recording, tmp_path / "run.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    column = np.array([float(row["q.crank [rad]"]) for row in rows])
    np.testing.assert_array_equal(column, recording.q[:, 0])
    assert json.loads(rows[-1]["events []"]) == list(recording.events)


def test_names_and_limits_are_those_of_the_model(recording):
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    stand = validate(rest, models.path("quadruped"), 0.01).runs[0]
    columns = stand.recording.columns
    for j in range(1, model.njnt):  # behind the free joint
        i = int(model.jnt_qposadr[j])
        assert columns["q"].names[i] == model.joint(j).name
        expected = model.jnt_range[j] if model.jnt_limited[j] else (-np.inf, np.inf)
        np.testing.assert_array_equal(columns["q"].limits[i], expected)
    assert columns["q"].names[3].endswith(".qw")
    assert columns["v"].units[:6] == ("m/s",) * 3 + ("rad/s",) * 3


def test_a_file_that_is_no_recording_says_so(recording, tmp_path):
    with pytest.raises(ProblemError, match=r"saved as \.npz, \.csv"):
        save_recording(recording, tmp_path / "run.txt")
    with pytest.raises(ProblemError, match="no folder"):
        save_recording(recording, tmp_path / "nowhere" / "run.npz")
    with pytest.raises(ProblemError, match="no file"):
        load_recording(tmp_path / "run.npz")
    for suffix in (".npz", ".csv"):
        (tmp_path / f"other{suffix}").write_text("a,b\n1,2\n")
        with pytest.raises(ProblemError, match="other"):
            load_recording(tmp_path / f"other{suffix}")


def test_a_missing_h5py_is_named(recording, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"mbcasadi\[hdf5\].*\.npz"):
        save_recording(recording, tmp_path / "run.h5")
    assert not list(tmp_path.iterdir())
