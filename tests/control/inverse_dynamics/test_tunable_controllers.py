"""Gains, weights and contacts as inputs: as a controller that was built with these values."""

from dataclasses import replace

import numpy as np
import pytest
from mechanisms import feet, stand, system_of

from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.tick.tuning import TUNABLE
from mbcasadi.errors import ProblemError, UnknownNameError

SAME = 1e-5
"""Relative: the weight of 1e-9 on torques is a share of the tasks' cost at the default weights."""

TASKS = [
    FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
    PostureTask(kp=50.0, weight=1.0),
]
SLOPE = (0.2, -0.1, 0.9)


def law_of(tasks=None, contacts=None, **options):
    tasks, contacts = tasks or TASKS, contacts or feet(min_force=1.0)
    return InverseDynamicsQP(system_of("quadruped"), tasks, contacts, torque_weight=1e-9, **options)


@pytest.fixture(scope="module")
def law():
    return law_of(tunable=TUNABLE)


def changed(**fields):
    return [replace(foot, **fields) for foot in feet(min_force=1.0)]


CHANGES = {
    "gains": (
        {f"base.kp.{row}": 300.0 for row in ("x", "y", "z", "rx", "ry", "rz")}
        | {f"base.kd.{row}": 7.0 for row in ("x", "y", "z", "rx", "ry", "rz")},
        lambda: law_of([replace(TASKS[0], kp=300.0, kd=7.0), TASKS[1]]),
    ),
    "weights": (
        {
            f"posture.weight.{name}": 40.0
            for name in PostureTask().components(system_of("quadruped"))
        },
        lambda: law_of([TASKS[0], replace(TASKS[1], weight=40.0)]),
    ),
    "friction": (
        {f"{foot.frame}.friction": 0.05 for foot in feet()},
        lambda: law_of(contacts=changed(friction=0.05)),
    ),
    "forces": (
        {f"{foot.frame}.min_force": 8.0 for foot in feet()}
        | {f"{foot.frame}.max_force": 45.0 for foot in feet()},
        lambda: law_of(contacts=changed(min_force=8.0, max_force=45.0)),
    ),
    "normals": (
        {f"FL.normal.{axis}": value for axis, value in zip("xyz", SLOPE, strict=True)},
        lambda: law_of(
            contacts=[replace(feet(min_force=1.0)[0], normal=SLOPE), *feet(min_force=1.0)[1:]]
        ),
    ),
}


def states(law, count=4):
    rng = np.random.default_rng(6)
    for _ in range(count):
        q, v = stand(law.system, rng, spread=0.03, key="stand")
        ref = law.reference_at(law.system.tree.keyframes["stand"])
        ref[law.reference_slices["base.acceleration"]] = 2 * rng.standard_normal(3)
        yield q, v, ref


@pytest.mark.parametrize("name", CHANGES)
def test_a_tuned_controller_is_the_one_built_with_these_values(law, name):
    tuning, build = CHANGES[name]
    built, differs = build(), False
    for q, v, ref in states(law):
        tuned, expected, default = (
            law.solve(q, v, ref, tuning=tuning), built.solve(q, v, ref), law.solve(q, v, ref),
        )  # fmt: skip
        assert tuned.status == expected.status
        if not expected.solved:
            continue
        scale = np.abs(expected.p).max()
        np.testing.assert_allclose(tuned.p, expected.p, atol=SAME * scale)
        force = tuned.contact_forces
        np.testing.assert_allclose(force, expected.contact_forces, atol=SAME * np.abs(force).max())
        differs |= np.abs(default.p - expected.p).max() > 1e-2 * scale
    assert differs


def test_defaults_are_those_of_a_controller_without_tuning(law):
    fixed = law_of()
    assert "tuning" not in fixed.function.name_in()
    for q, v, ref in states(law):
        expected, found = fixed.solve(q, v, ref), law.solve(q, v, ref)
        assert found.solved
        np.testing.assert_allclose(found.p, expected.p, atol=SAME * np.abs(expected.p).max())


@pytest.mark.parametrize(
    "wrong",
    [
        {"base.kp.x": np.nan},
        {"base.kp.x": -1.0},
        {"FL.friction": 0.0},
        {"FL.normal.x": 0.0, "FL.normal.y": 0.1, "FL.normal.z": 0.2},
        {"FL.min_force": 30.0, "FL.max_force": 20.0},
        {"posture.weight.FL_hip": np.inf},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_values_that_make_no_sense_are_bad_input(law, wrong):
    q, v, ref = next(states(law))
    values = [wrong.get(parameter.name, parameter.default) for parameter in law.tuning]
    given = {"q": q, "v": v, "ref": ref, "tuning": values, "mask": np.ones(4), "z": law.z0}
    outputs = law.function(**given)
    assert int(outputs["status"]) == 3
    u = np.array(outputs["u"]).ravel()
    assert np.all((u >= law.system.limits.ctrl[:, 0]) & (u <= law.system.limits.ctrl[:, 1]))


def test_the_generated_c_takes_tuning_and_its_defaults(law, tmp_path):
    project = export_c(law, tmp_path / "tuned")
    compiled = project.load()
    names = [parameter.name for parameter in law.tuning]
    assert [entry["name"] for entry in project.manifest["tuning"]] == names
    tuning = {key: value for change, _ in CHANGES.values() for key, value in change.items()}
    values = [tuning.get(parameter.name, parameter.default) for parameter in law.tuning]
    mask = np.ones(4)
    for q, v, ref in states(law):
        for entries in (values, [parameter.default for parameter in law.tuning]):
            inputs = {"q": q, "v": v, "ref": ref, "tuning": entries, "mask": mask, "z": law.z0}
            found, expected = compiled(**inputs), law.function(**inputs)
            assert float(found["status"]) == float(expected["status"])
            np.testing.assert_allclose(
                np.array(found["u"]), np.array(expected["u"]), atol=1e-6 * 30
            )


def test_unknown_names_are_refused(law):
    with pytest.raises(ProblemError, match="'gains', 'weights', 'friction', 'forces', 'normals'"):
        law_of(tunable=("mass",))
    q, v, ref = next(states(law))
    with pytest.raises(UnknownNameError, match=r"entry of tuning 'base\.ki\.x'"):
        law.solve(q, v, ref, tuning={"base.ki.x": 1.0})
