"""Controllers and motions read from TOML."""

from dataclasses import MISSING, fields
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from mbcasadi import control, models
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    FrictionLoss,
    HalfSpace,
    JointLimits,
    LoadRamp,
    PostureTask,
    SoftLimit,
)
from mbcasadi.description import Contact
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.system import read_mjcf
from mbcasadi.validation.demo import PARTS
from mbcasadi.validation.spec import build_experiment, example_inputs, parse_spec, read_spec
from mbcasadi.validation.spec.common import MaskSwitch
from mbcasadi.validation.spec.inverse_dynamics import AnyPart
from mbcasadi.validation.spec.kinds import experiment_for_system
from mbcasadi.validation.spec.motion import mask_schedule, task_motion
from mbcasadi.validation.spec.signals import Sine
from mbcasadi.validation.spec.tables import by_type

ROUNDING = 1e-12
STEP = 1e-5  # central differences of smooth motions: truncation near 1e-7 at 26 rad/s²
DIFFERENCE = 1e-6

CRANK = {
    "type": "inverse_dynamics_qp",
    "task": [{"type": "posture", "joints": ["crank"], "reference": {"crank": 0.2}}],
}
TILT = {"frequency": 0.7, "ramp": 0.4, "phase": 30}


def four_bar(**changes):
    return build_experiment(parse_spec(CRANK | changes), models.path("four_bar"))


@pytest.fixture(scope="module")
def quadruped():
    return read_mjcf(models.path("quadruped"))


def motion_of(task, system, q0, given):
    """Return (t) -> every slice of the task's reference, by name."""
    t = ca.SX.sym("t")
    values = task_motion(task, system, q0, given, t)
    function = ca.Function("motion", [t], list(values.values()), ["t"], list(values))
    return lambda now: {name: np.array(v).ravel() for name, v in function(t=now).items()}


def test_a_file_that_nests_too_deeply_is_refused(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text(f"a = {'[' * 100_000}{']' * 100_000}")
    with pytest.raises(ProblemError, match="nests its values too deeply"):
        read_spec(path)
    path.write_text(f"type = 'inverse_dynamics_qp'\n[[task]]\ntype = {'[' * 200}{']' * 200}")
    with pytest.raises(ProblemError, match=r"task"):
        read_spec(path)


def test_velocity_and_acceleration_of_a_turning_frame_are_those_of_its_pose(quadruped):
    given = {
        "x": Sine(amplitude=0.04, **TILT),
        "rx": Sine(amplitude=0.5, **TILT),
        "ry": Sine(amplitude=0.3, frequency=0.4),
        "rz": Sine(amplitude=0.4, frequency=0.9, phase=70),
    }
    at = motion_of(FrameTask("trunk"), quadruped, quadruped.tree.keyframes["stand"], given)
    for t in (0.3, 1.1):
        now, before, after = at(t), at(t - STEP), at(t + STEP)
        slope = {name: (after[name] - before[name]) / (2 * STEP) for name in now}
        np.testing.assert_allclose(now["velocity"], slope["position"], atol=DIFFERENCE)
        np.testing.assert_allclose(now["acceleration"], slope["velocity"], atol=DIFFERENCE)
        np.testing.assert_allclose(
            now["angular_acceleration"], slope["angular_velocity"], atol=DIFFERENCE
        )
        w, xyz = now["quaternion"][0], now["quaternion"][1:]
        dw, dxyz = slope["quaternion"][0], slope["quaternion"][1:]
        omega = 2 * (w * dxyz - dw * xyz - np.cross(dxyz, xyz))  # 2 vec(dquat ∘ conj(quat))
        np.testing.assert_allclose(now["angular_velocity"], omega, atol=DIFFERENCE)
        assert np.linalg.norm(omega) > 0.1


TABLES = [
    {"type": "com", "axes": "xz", "reference": {"z": {"amplitude": 0.04, "frequency": 0.7}}},
    {"type": "momentum", "reference": {"rx": {"amplitude": 0.5, "frequency": 0.4}}},
    {"type": "direction", "frame": "FL", "reference": {"y": {"rate": 0.3}}},
    {"type": "look_at", "frame": "trunk", "reference": {"x": {"amplitude": 1, "frequency": 0.3}}},
    {"type": "distance", "frame": "FL", "other": "RR", "reference": {"distance": {"rate": 0.1}}},
    {"type": "frame", "frame": "FL", "base": "trunk", "orientation": "", "reference": {"x": 0.1}},
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["type"])
def test_every_kind_of_task_starts_where_it_is_and_has_consistent_rates(quadruped, table):
    spec = parse_spec({"type": "inverse_dynamics_qp", "task": [table]})
    (task, reference), q0 = spec.task[0], quadruped.tree.keyframes["stand"]
    at = motion_of(task, quadruped, q0, reference)
    still = motion_of(task, quadruped, q0, {})(0.0)
    for name, value in task.hold_reference(quadruped, q0).items():
        np.testing.assert_allclose(still[name], value, atol=ROUNDING)
    now, before, after = at(0.4), at(0.4 - STEP), at(0.4 + STEP)
    names = list(task.hold_reference(quadruped, q0))
    assert np.abs(now[names[0]] - still[names[0]]).max() > 0.01
    for name, rate in pairwise(names):
        slope = (after[name] - before[name]) / (2 * STEP)
        np.testing.assert_allclose(now[rate], slope, atol=DIFFERENCE * 10)


def test_rotations_turn_about_the_worlds_axes(quadruped):
    q0 = quadruped.tree.keyframes["stand"].copy()
    q0[3:7] = [np.cos(0.4), 0, 0, np.sin(0.4)]  # the trunk is yawed already
    at = motion_of(FrameTask("trunk"), quadruped, q0, {"rx": 0.6})
    expected = ca.DM([np.cos(0.3), np.sin(0.3), 0, 0])  # about x of the world, from the left
    w, x, z = float(expected[0]), float(expected[1]), np.sin(0.4)
    product = [w * np.cos(0.4), x * np.cos(0.4), -x * z, w * z]
    np.testing.assert_allclose(at(0.0)["quaternion"], product, atol=ROUNDING)


def test_rotations_are_about_x_first_and_about_z_last(quadruped):
    q0 = quadruped.tree.keyframes["stand"]
    at = motion_of(FrameTask("trunk"), quadruped, q0, {"rz": 0.8, "rx": 0.6})
    cx, sx, cz, sz = np.cos(0.3), np.sin(0.3), np.cos(0.4), np.sin(0.4)
    z_after_x = [cz * cx, cz * sx, sz * sx, sz * cx]
    np.testing.assert_allclose(at(0.0)["quaternion"], z_after_x, atol=ROUNDING)


def test_a_reference_without_motion_is_the_initial_pose(quadruped):
    q0 = quadruped.tree.keyframes["stand"]
    for task in (FrameTask("trunk"), PostureTask()):
        at, present = motion_of(task, quadruped, q0, {}), task.hold_reference(quadruped, q0)
        for name, value in present.items():
            np.testing.assert_allclose(at(0.7)[name], value, atol=ROUNDING)


def test_the_mask_follows_its_schedule_in_time():
    mask = mask_schedule(
        ("left", "right", "loop"),
        [MaskSwitch(at=2.0, on=["right"]), MaskSwitch(at=1.0, off=["right", "loop"])],
    )
    np.testing.assert_array_equal(mask(0.5), [1, 1, 1])
    np.testing.assert_array_equal(mask(1.0), [1, 0, 0])
    np.testing.assert_array_equal(mask(3.0), [1, 1, 0])


def test_the_start_is_moved_onto_the_constraints():
    experiment = four_bar(start={"q": [0.4, 0.0, 0.0]})
    system = experiment.controller.system
    assert np.abs(np.array(system.constraint([0.4, 0.0, 0.0]))).max() > 1e-3
    assert np.abs(np.array(system.constraint(experiment.q0))).max() < 1e-9


def test_the_reference_fills_the_slices_of_the_controller():
    experiment = four_bar()
    ref = experiment.reference(1.0)
    assert ref.shape == (experiment.controller.nref,)
    assert ref[experiment.controller.reference_slices["posture.q"]] == pytest.approx(
        [experiment.q0[0] + 0.2]
    )


ACTUATOR = {"rate": 40.0, "stall_force": [2.0], "no_load_speed": 9.0}
LOOP_FORCE = {"constraint": "pin", "weight": [1e-2, 0.0, 2e-2], "force": [20.0, 9.0, -3.0]}
SHARING = {"kind": "least", "stiffness": {"pin": 2.0}, "preload": {"pin": [0.0, 1.0, 0.0]}}
JOINT = {"joints": ["crank"], "velocity": 2.0, "braking": 9.0}
DISTANCE = {"braking": 5.0, "margin": 0.01, "pairs": ["FL on floor"], "nearest": 3}
PLANE = {"type": "half_space", "frame": "FL", "offset": 0.1, "braking": 20.0}
REACHING = [
    ({"options": {"tunable": ["gains"]}}, "tuning", ["posture.kp.crank", "posture.kd.crank"]),
    ({"limits": {"joint": JOINT}}, "joint_limits", JointLimits(("crank",), 2.0, braking=9.0)),
    ({}, "joint_limits", None),
    (
        {"limits": {"joint": JOINT, "soft": [{"limits": "joints", "linear": 3.0}]}},
        "soft",
        (SoftLimit("joints", linear=3.0),),
    ),
    ({"sharing": SHARING}, "sharing.kind", "least"),
    ({"sharing": SHARING}, "sharing.preload", {"pin": (0.0, 1.0, 0.0)}),
    (
        {"limits": {"loop": {"pin": [[-5, 5], [-6, 6], [-7, 7]]}}},
        "row_names",
        [f"loop 'pin': force {axis}" for axis in "xyz"],
    ),
    ({"loop_force": [LOOP_FORCE]}, "weighed_forces", [1e-2, 2e-2]),
    ({"limits": {"actuator": ACTUATOR}}, "actuator_limits.rate", 40.0),
    ({"limits": {"actuator": ACTUATOR}}, "actuator_limits.stall_force", (2.0,)),
    ({"limits": {"ctrl": {"crank": [-0.5, 0.25]}}}, "controller.u_max", [0.25]),
    ({"options": {"torque_weight": 3e-3}}, "torque_weight", 3e-3),
    (
        {"options": {"torque_weight": [2e-3], "torque_rate_weight": 0.1}},
        "torque_weights",
        [[2e-3], [0.1]],
    ),
    ({"options": {"servo_plant": "start"}}, "servo_plant", "start"),
    ({"options": {"levels": [["posture"]]}}, "levels", (("posture",),)),
    ({"options": {"level_damping": 0.02, "levels": [["posture"]]}}, "level_damping", 0.02),
    ({"load_ramp": {"duration": 0.1, "force": 60.0}}, "load_ramp", LoadRamp(0.1, 60.0)),
    (
        {"friction_loss": {"losses": {"crank": 0.4}, "share": 0.7}},
        "friction_loss",
        FrictionLoss({"crank": 0.4}, share=0.7),
    ),
]


@pytest.mark.parametrize(("changes", "name", "expected"), REACHING)
def test_what_a_file_says_reaches_the_controller(changes, name, expected):
    found = four_bar(**changes).controller
    for part in name.split("."):
        found = getattr(found, part)
    if name == "tuning":
        found = [parameter.name for parameter in found]
    if name == "weighed_forces":
        found = [each.weight for each in found]
    if name == "row_names":
        found = list(found[-3:])
    if isinstance(expected, list):
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def quadruped_law(system, **changes):
    tables = {"type": "inverse_dynamics_qp", "task": [{"type": "posture"}]} | changes
    q0 = system.tree.keyframes["stand"]
    return experiment_for_system(parse_spec(tables), system, q0).controller


def test_parts_of_any_kind_reach_the_controller_by_their_name(quadruped):
    controller = quadruped_law(
        quadruped, limits={"distance": DISTANCE}, part=[PLANE, {"type": "disturbance_observer"}]
    )
    assert controller.parts == (HalfSpace("FL", 0.1, 20.0), DisturbanceObserver())
    assert {"half-space 'FL'", "distance 'FL on floor'"} <= {*controller.row_names}
    assert (controller.distance_limits.nearest, controller.distance_limits.margin) == (3, 0.01)


def test_every_task_that_a_file_can_hold_has_a_type_and_is_tested_here():
    types = by_type(control, control.Task, "Task")
    assert {"posture", "joint_range", *(table["type"] for table in TABLES)} == {*types}
    table = {"type": "joint_range", "joints": ["FL_hip"], "border": 0.1}  # it has no reference
    spec = parse_spec({"type": "inverse_dynamics_qp", "task": [table]})
    assert spec.task[0][0] == control.JointRangeTask(("FL_hip",), border=0.1)


@pytest.mark.parametrize("kind", by_type(control, control.Part).items(), ids=lambda kind: kind[0])
def test_the_table_of_a_part_has_its_fields_defaults_and_docs(kind):
    name, part = kind
    properties = TypeAdapter(AnyPart).json_schema()["$defs"][part.__name__]["properties"]
    assert all("description" in own for key, own in properties.items() if key != "type")
    needed = [each for each in fields(part) if each.default is MISSING and each.init]
    needed = [each for each in needed if each.default_factory is MISSING]
    if not needed and part is not control.RigidSprings:  # it needs one of two
        assert TypeAdapter(AnyPart).validate_python({"type": name}) == part()
    with pytest.raises(ValidationError, match="unknown key 'no_such_key'; valid: "):
        TypeAdapter(AnyPart).validate_python({"type": name, "no_such_key": 1})


def test_the_force_of_a_loop_in_the_cost_has_its_reference():
    experiment = four_bar(loop_force=[LOOP_FORCE])
    own = experiment.controller.reference_slices["loop_force"]
    assert np.array(experiment.reference(0.5)).ravel()[own].tolist() == [20.0, -3.0]
    with pytest.raises(ProblemError, match="expected one number, or 3"):
        four_bar(loop_force=[LOOP_FORCE | {"force": [1.0, 2.0]}])
    assert four_bar(limits={"loop": {"pin": [-5, 5]}}).controller.load_sharing is not None


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"task": [{"type": "posture", "joints": ["crnk"]}]}, UnknownNameError, "'crank'"),
        ({"task": [{"type": "frame", "frame": "tip"}]}, UnknownNameError, "'tracer'"),
        ({"contact": [{"frame": "foot"}]}, UnknownNameError, "'coupler_pin'"),
        ({"start": {"keyframe": "home"}}, UnknownNameError, "key frame 'home'"),
        ({"start": {"q": [0.0]}}, ShapeError, r"start.q has shape \(1,\)"),
        ({"mask": [{"at": 1.0, "off": ["pn"]}]}, UnknownNameError, "'pin'"),
        ({"limits": {"ctrl": {"motor": [-1, 1]}}}, UnknownNameError, "'crank'"),
        ({"limits": {"ctrl": {"crank": [1, -1]}}}, ProblemError, "above"),
        (
            {"task": [{"type": "posture", "joints": ["crank"], "reference": {"rocker": 0.1}}]},
            UnknownNameError,
            "entry in the reference of 'posture' 'rocker'",
        ),
    ],
)
def test_unknown_names_and_contradictions_say_what_is_valid(changes, error, words):
    with pytest.raises(error, match=words):
        four_bar(**changes)


def test_the_example_of_an_export_has_the_files_start_and_reference():
    experiment = four_bar(start={"q": [0.3, 0.0, 0.0]})
    example = example_inputs(experiment)[""]
    np.testing.assert_array_equal(example["q"], experiment.q0)
    assert example["q"][0] != 0
    assert example["ref"][0] == pytest.approx(example["q"][0] + 0.2)  # the file adds 0.2 rad


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": []}, "unknown key 'tasks'; valid: .*; did you mean 'task'"),
        ({"type": "lqq"}, "unknown type of controller 'lqq'; .*; did you mean 'lqr'"),
        ({"type": None}, "type is missing; expected one of 'inverse_dynamics_qp'"),
        ({"task": [{"type": "frame"}]}, r"task 1 \('frame'\)\.frame: field required"),
        (
            {"task": [{"type": "frame", "frame": "a", "kpp": 1}]},
            r"task 1 \('a'\): unknown key 'kpp'; .*'kp'",
        ),
        ({"task": [{"type": "frame", "frame": "frame", "kp": "x"}]}, r"'frame'\)\.kp: .*'x'$"),
        ({"task": [{"type": "postur"}]}, r"task 1 \('postur'\): unknown type.*mean 'posture'"),
        ({"part": [{"type": "half_space", "offset": 1.0}]}, r"part 1 .*\.frame: field required"),
        ({"start": {"q": [0.0, "a"]}}, "start.q, entry 2: .*number, found 'a'"),
        ({"limits": {"joint": {"velocty": 1.0}}}, "limits.joint: unknown key 'velocty'.*'veloc"),
        ({"observer": {"bandwidth": -1.0}}, "observer: bandwidth = -1.0; expected a finite, pos"),
        ({"options": {"fallback": "stop"}}, "options.fallback: .*'safe', 'hold' or 'zero'"),
        ({"period": 0}, "period: .*greater than 0"),
        (
            {"task": [{"type": "posture", "reference": {"crank": {"amplitude": 1}}}]},
            r"task 1 \('posture'\)\.reference\.crank\.frequency: field required",
        ),
    ],
)
def test_a_wrong_key_or_value_is_named(changes, words):
    with pytest.raises((ProblemError, UnknownNameError), match=words):
        parse_spec(CRANK | changes)


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path):
    with pytest.raises(ProblemError, match=r"cannot read the controller .*none.toml"):
        read_spec(tmp_path / "none.toml")
    path = tmp_path / "broken.toml"
    for text in ("type = ", f"period = {'9' * 5000}"):  # Python reads 4,300 digits
        path.write_text(text)
        with pytest.raises(ProblemError, match=r"broken.toml is not TOML"):
            read_spec(path)


def test_conditions_of_the_trial_can_be_replaced():
    spec = parse_spec(CRANK | {"validation": {"duration": 3.0, "delay": 1}})
    changed = spec.with_trial(duration=1.0, delay=None, perturb={"mass": 0.2})
    assert (changed.validation.duration, changed.validation.delay) == (1.0, 1)
    assert changed.validation.perturb == {"mass": 0.2}
    assert spec.validation.duration == 3.0


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.model)
def test_the_specs_of_the_demonstration_can_be_read(part):
    spec = read_spec(part.controller)
    assert spec.trial.criteria.limits
    assert spec.validation.duration > 1.0


TOUCH = {"frame": "FL on floor", "kind": "contact"}


@pytest.mark.parametrize("kind", [{"frame": "FL"}, TOUCH])
def test_the_cone_of_a_contact_is_that_of_its_table(quadruped, kind):
    for cone in ("inner", "outer", "quadratic"):
        (found,) = quadruped_law(quadruped, contact=[kind | {"cone": cone}]).contacts
        assert found.cone == cone


def test_contacts_of_the_geometry_have_its_normal_and_friction(quadruped):
    right = TOUCH | {"frame": "FR on floor", "friction": 0.3}
    left, right = quadruped_law(quadruped, contact=[TOUCH, right]).contacts
    assert (left.frame, left.kind, left.friction) == ("FL on floor", "contact", 0.8)
    assert left.normal == (0.0, 0.0, 1.0)
    assert right.friction == 0.3


SLIDING = {
    "contact": [
        {"frame": "FL", "slides": True, "slide_speed": 0.02, "force": [40.0, 0.0, 0.0]},
        TOUCH
        | {"frame": "FR on floor", "slides": True, "force": [30.0, 0, 0], "slide_task": "trunk"},
        {"frame": "RL"},
    ],
    "task": [{"type": "frame", "frame": "trunk", "kind": "body"}],
    "options": {"force_weight": [1e-2, 0.0, 0.0]},
    "force_feedback": {"limit": 12.0, "gain": 8.0},
}


def test_sliding_contacts_and_forces_reach_the_controller(quadruped):
    spec = parse_spec({"type": "inverse_dynamics_qp"} | SLIDING)
    found = experiment_for_system(spec, quadruped, quadruped.tree.keyframes["stand"])
    law = found.controller
    assert [contact.slides for contact in law.contacts] == [True, True, False]
    assert [contact.slide_speed for contact in law.contacts] == [0.02, 0.01, 0.01]
    assert [contact.slide_task for contact in law.contacts] == ["", "trunk", ""]
    assert law.contacts[2] == Contact("RL")  # the defaults of Python
    assert (law.force_feedback.limit, law.force_feedback.gain) == (12.0, 8.0)
    np.testing.assert_allclose(law.contact_weights, np.tile([1e-2, 0, 0], 3))
    force = found.reference(0.3)[law.reference_slices["force"]]
    np.testing.assert_allclose(force, [40, 0, 0, 30, 0, 0, 0, 0, 0])
    assert "f_measured" in law.function.name_in()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"contact": [TOUCH | {"frame": "FL"}]}, "unknown contact 'FL'; valid: 'FL on floor'"),
        (
            {"contact": [TOUCH | {"normal": (0.0, 0.0, 1.0)}]},
            "'FL on floor': normal = .*; expected none",
        ),
        ({"contact": [TOUCH | {"cone": "round"}]}, "cone"),
        ({"contact": [{"frame": "FL", "cone": "round"}]}, "cone"),
        (SLIDING | {"contact": [{"frame": "FL"}]}, "without a reference"),
        ({"rigid_springs": {"joints": ["FL_calf"]}}, "'FL_calf' has no stiffness"),
        ({"limits": {"distance": {"margin": -0.01}}}, r"limits\.distance: margin = -0\.01"),
        ({"part": [PLANE | {"braking": -1.0}]}, r"part 1 \('FL'\): .*braking"),
        ({"part": [PLANE | {"slope": 1.0}]}, r"part 1 \('FL'\): unknown key 'slope'"),
        ({"part": [{"type": "half_plane"}]}, "unknown type 'half_plane'.*mean 'half_space'"),
    ],
)
def test_what_a_quadruped_lacks_is_refused(quadruped, changes, words):
    with pytest.raises((ProblemError, UnknownNameError), match=words):
        quadruped_law(quadruped, **changes)


ELASTIC = """
<mujoco>
  <worldbody><body><joint name="motor" axis="0 1 0"/><geom size=".1"/>
    <body><joint name="spring" axis="0 1 0" stiffness="500"/><geom size=".1" pos=".3 0 0"/></body>
  </body></worldbody>
  <actuator><motor joint="motor"/></actuator>
</mujoco>
"""


def test_springs_reach_the_controller():
    tables = {"type": "inverse_dynamics_qp", "task": [{"type": "posture", "joints": ["motor"]}]}
    tables["rigid_springs"] = {"joints": ["spring"], "damping": 12.0}
    law = experiment_for_system(parse_spec(tables), read_mjcf(ELASTIC), np.zeros(2)).controller
    assert law.rigid_springs == control.RigidSprings(("spring",), damping=12.0)
