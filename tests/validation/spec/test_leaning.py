"""A base leans where an upright one would bring the hips to their stops, and not elsewhere."""

import re
import tomllib

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.validation.spec import parse_spec, propose_spec
from mbcasadi.validation.spec.leaning import LEANS, UPRIGHT, lean_over, pose_over

FEET = ("left_foot", "right_foot")
WAY = np.array([0.0, -0.1])  # m, over the right foot
NARROW = 0.05  # rad, of the roll of the hips that brings them over it


def model(narrow=None):
    """Return MJCF of a humanoid whose hips may roll inward by so much, rad."""
    text = mb.models.path("humanoid").read_text()
    if narrow is not None:
        for side, low, high in (("left", -narrow, 1.0), ("right", -1.0, narrow)):
            joint = re.search(rf'<joint name="{side}_hip_roll"[^>]*>', text).group()
            bare = re.sub(r' (range|limited)="[^"]*"', "", joint)
            ranged = bare.replace("/>", f' limited="true" range="{low} {high}"/>')
            text = text.replace(joint, ranged)
    return text


def humanoid(narrow=None):
    """Return the system, and its pose."""
    system = mb.read_mjcf(model(narrow))
    return system, np.array(next(iter(system.tree.keyframes.values()), system.tree.q0)).ravel()


def test_hips_with_little_room_make_the_base_lean_over_the_foot():
    base = humanoid()[0].tree.bodies[1].name
    free, narrow = humanoid(), humanoid(NARROW)
    assert np.all(lean_over(*free, base, FEET, WAY) == 0.0)
    lean = lean_over(*narrow, base, FEET, WAY)
    assert lean[0] > 0.02  # about x, towards the foot
    (_, upright, _), (_, leaning, _) = (
        pose_over(*narrow, (base, FEET, WAY), level) for level in (UPRIGHT, LEANS)
    )
    assert upright > 0.02  # rad, nearer to the stop
    assert leaning < 1e-3
    mirrored = lean_over(*narrow, base, FEET, -WAY)
    np.testing.assert_allclose(mirrored[0], -lean[0], atol=0.01)
    assert np.all(lean_over(*narrow, base, FEET, 0 * WAY) == 0.0)


def test_the_file_of_a_lift_leans_while_the_weight_moves(tmp_path):
    path = tmp_path / "narrow.xml"
    path.write_text(model(NARROW))
    spec = tomllib.loads(propose_spec(path, task="lift"))
    parse_spec(spec)
    base, com = spec["task"][:2]
    turns, steps = base["reference"]["rx"], com["reference"]["y"]
    for turn, step in zip(turns, steps, strict=True):
        assert (turn["start"], turn["duration"]) == (step["start"], step["duration"])
        assert turn["by"] * step["by"] < 0.0  # it leans towards the foot
    assert sum(turn["by"] for turn in turns) == pytest.approx(0.0, abs=1e-3)
    wide = tomllib.loads(propose_spec(mb.models.path("humanoid"), task="lift"))
    assert "reference" not in wide["task"][0]
