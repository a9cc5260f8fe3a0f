"""All kinds of tasks: derivatives by differences, values by MuJoCo, references that move."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import feet, stand, system_of
from support.refusals import refused

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control import (
    ComTask,
    DirectionTask,
    DistanceTask,
    FrameTask,
    FunctionTask,
    InverseDynamicsQP,
    LookAtTask,
    MomentumTask,
    PostureTask,
    check_task,
)
from mbcasadi.control.tasks.task import Residual, Slot, Task, own_slices
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.system import from_lagrangian

ROUNDING = 1e-10
STEP = 1e-5
DIFFERENCE = 1e-6  # central differences with that step, rates of some 10


def height() -> ca.Function:
    """Return (q) → the quadruped's height and its square."""
    q = ca.SX.sym("q", 19)
    return ca.Function("height", [q], [ca.vertcat(q[2], q[2] ** 2)], ["q"], ["y"])


system = pytest.fixture(scope="module")(lambda: mb.read_mjcf(models.path("quadruped")))
TASKS = {
    "posture": PostureTask(),
    "one joint": PostureTask(("FL_hip",)),
    "com": ComTask("zx"),
    "momentum": MomentumTask(),
    "angular momentum": MomentumTask(linear="", angular="yz"),
    "frame": FrameTask("trunk", kind="body"),
    "foot from the trunk": FrameTask("FL", base="trunk", orientation="yz"),
    "trunk from a foot": FrameTask("trunk", kind="body", base="RR", base_kind="site"),
    "direction": DirectionTask("FL", axis=(0.3, -1.0, 0.5)),
    "look at": LookAtTask("trunk", axis=(1.0, 0.0, 0.2), kind="body"),
    "distance": DistanceTask("FL", "RR"),
    "function": FunctionTask(height(), "height", row_units=("m", "m²")),
}


@pytest.mark.parametrize("name", TASKS)
def test_jacobian_and_bias_are_those_of_the_error(system, name):
    task = TASKS[name]
    found = check_task(task, system)
    assert max(found.hold, found.jacobian, found.bias) < 1e-7
    assert len(task.components(system)) == len(task.units(system))


class Wrong(Task):
    """A height with one wrong part."""

    name, kp, kd, weight = "wrong", 1.0, None, 1.0

    def __init__(self, part: str) -> None:
        self.part = part

    def components(self, _system):
        return ("z",)

    def units(self, _system):
        return ("m",)

    def slots(self, _system):
        return (Slot("wrong.position", ("z",), ("m",)),)

    def residual(self, system, q, v, ref):
        frame = system.frame("FL")
        signs = {"J": 1.0, "bias": 1.0, "error": 1.0} | {self.part: -1.0}
        return Residual(
            J=signs["J"] * frame.jacobian(q)[2, :],
            c=signs["bias"] * frame.bias(q, v)[2],
            error=ref["position"] - frame.pose(q)[0][2] + 0.1 * (signs["error"] - 1),
            target=ref["position"],
            v_ref=ca.SX(1, 1),
            a_ref=ca.SX(1, 1),
        )

    def hold_reference(self, system, q):
        return {"position": np.array(system.frame("FL").pose(q)[0])[2]}


@pytest.mark.parametrize(
    ("part", "word"), [("J", "Jacobian"), ("bias", "bias"), ("error", "hold_reference")]
)
def test_a_task_of_ones_own_with_a_wrong_part_is_refused(system, part, word):
    check_task(Wrong(""), system)
    refused(ProblemError, f"{word} of row 'z'", lambda: check_task(Wrong(part), system))


def residual_fun(task, system) -> tuple[ca.Function, dict[str, slice]]:
    """Return (q, v, ref) → (J, c, error, v_ref, a_ref), and the slices of ref."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    slots = task.slots(system)
    ends = np.cumsum([0, *(slot.size for slot in slots)])
    ref = ca.SX.sym("ref", int(ends[-1]))
    places = {s.name: slice(int(a), int(b)) for s, a, b in zip(slots, ends, ends[1:], strict=False)}
    r = task.residual(
        system, q, v, own_slices(task, system, {k: ref[x] for k, x in places.items()})
    )
    outputs = [r.J, r.c, r.error, r.v_ref, r.a_ref]
    return ca.Function("r", [q, v, ref], [ca.densify(x) for x in outputs]), places


def test_momentum_is_that_of_mujocos_bodies(system):
    plant = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    data, rng, root = mujoco.MjData(plant), np.random.default_rng(1), plant.body("trunk").id
    f, _ = residual_fun(MomentumTask(), system)
    q = random_pose(system, rng)
    data.qpos[:], data.qvel[:] = q.ravel(), rng.normal(size=system.nv)
    mujoco.mj_forward(plant, data)
    mujoco.mj_subtreeVel(plant, data)
    linear = plant.body_subtreemass[root] * data.subtree_linvel[root]
    expected = np.r_[linear, data.subtree_angmom[root]]
    assert_allclose(-np.array(f(q, data.qvel, np.zeros(12))[2]).ravel(), expected, atol=ROUNDING)
    assert np.linalg.norm(expected[3:]) > 0.1


@pytest.mark.parametrize("name", ["direction", "look at"])
def test_an_axis_error_is_the_rotation_to_the_direction(system, name):
    task, rng = TASKS[name], np.random.default_rng(2)
    f, places = residual_fun(task, system)
    first = next(iter(places.values()))
    for _ in range(5):
        q, target, ref = random_pose(system, rng), rng.normal(size=3), np.zeros(9)
        p, R = (np.array(x) for x in system.frame(task.frame, task.kind).pose(q))
        b = R @ np.asarray(task.axis) / np.linalg.norm(task.axis)
        way, ref[first] = target - p.ravel() * (name == "look at"), target
        error = np.array(f(q, np.zeros(system.nv), ref)[2]).ravel()
        angle = np.arccos(b @ way / np.linalg.norm(way))
        assert np.linalg.norm(error) == pytest.approx(angle, abs=1e-7)


def test_an_axis_turned_away_from_its_direction_has_an_error_of_half_a_turn(system):
    task = DirectionTask("trunk", kind="body")
    f, _ = residual_fun(task, system)
    q = system.tree.keyframes["stand"]
    error = np.array(f(q, np.zeros(system.nv), np.r_[0, 0, -2.0, np.zeros(6)])[2]).ravel()
    assert np.linalg.norm(error) == pytest.approx(np.pi)
    nowhere = np.array(f(q, np.zeros(system.nv), np.zeros(9))[2]).ravel()
    assert_array_equal(nowhere, 0.0)


@pytest.mark.parametrize("name", ["direction", "look at"])
def test_a_target_that_moves_is_fed_forward(system, name):
    """Along any motion, the rate of the error is that of `v_ref - J v` where the error is zero,
    and `a_ref` is the rate of `v_ref`."""
    task = TASKS[name]
    f, _ = residual_fun(task, system)
    rng = np.random.default_rng(3)
    q = np.array(system.integrate(system.tree.keyframes["stand"], 0.3 * rng.normal(size=system.nv)))
    v = rng.normal(size=system.nv)
    held = task.hold_reference(system, q.ravel())
    x, rate, second = next(iter(held.values())), rng.normal(size=3), rng.normal(size=3)

    def at(s: float) -> list[np.ndarray]:
        ref = np.r_[x + s * rate + s**2 / 2 * second, rate + s * second, second]
        return [np.array(part) for part in f(system.integrate(q, s * v), v, ref)]

    J, c, error, v_ref, a_ref = at(0.0)
    ahead, behind = at(STEP), at(-STEP)
    assert_allclose(error, 0, atol=1e-12)
    rates = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
    assert_allclose(rates[2], v_ref - J @ v[:, None], atol=DIFFERENCE)
    assert_allclose(rates[3], a_ref, atol=DIFFERENCE * 10)
    assert_allclose(rates[0] @ v[:, None], c, atol=DIFFERENCE * 10)
    assert np.abs(v_ref).max() > 0.01


@pytest.mark.long
def test_the_controller_reaches_what_each_task_asks_for(system):
    feet = [mb.Contact(name, friction=2.0) for name in ("FL", "FR", "RL", "RR")]
    wide = np.tile([-np.inf, np.inf], (system.nu, 1))
    q = np.array(system.tree.keyframes["stand"])
    for name in ("com", "momentum", "direction", "distance", "function"):
        task = TASKS[name]
        task = DistanceTask("FL", "trunk", other_kind="body") if name == "distance" else task
        task = DirectionTask("trunk", kind="body") if name == "direction" else task
        law = mb.control.InverseDynamicsQP(
            system, [task], feet, torque_weight=1e-9, force_limits=wide, ctrl_limits=wide
        )
        ref = law.reference_at(q)
        last = task.slots(system)[-1].name
        size = 0.05 * (50 if name == "momentum" else 1)
        ref[law.reference_slices[last]] = size * np.arange(1, 1 + task.slots(system)[-1].size)
        solution = law.solve(q, np.zeros(system.nv), ref)
        assert solution.solved, name
        f, _ = residual_fun(task, system)
        J, c, *_, a_ref = (np.array(x) for x in f(q, np.zeros(system.nv), ref))
        reached = J @ solution.a[:, None] + c
        if name in ("function", "distance"):  # two rows of one coordinate; a foot that stands
            continue
        assert_allclose(reached, a_ref, atol=1e-3 * max(1, np.abs(a_ref).max()))


@pytest.mark.parametrize(
    "task",
    [DistanceTask("own", "FL"), DirectionTask("own"), LookAtTask("own")],
    ids=lambda task: type(task).__name__,
)
def test_frames_of_one_name_on_two_systems_are_told_apart(system, task):
    """A system and the same one with a frame share what is cached, but nothing of the frame."""
    q = ca.SX.sym("q", system.nq)
    turned = ca.DM([[0, 1, 0], [1, 0, 0], [0, 0, -1]])
    first = system.with_frame("own", q, q[:3], ca.DM.eye(3))
    second = system.with_frame("own", q, 2 * q[:3], turned)
    at = np.array(system.tree.keyframes["stand"]), np.zeros(system.nv)
    ref = np.array([0.3, 0.4, 0.5, *np.zeros(6)])
    errors = []
    for each in (first, second):
        f, places = residual_fun(task, each)
        errors.append(np.array(f(*at, ref[: max(place.stop for place in places.values())])[2]))
    assert np.abs(errors[0] - errors[1]).max() > 0.1


def test_wrong_arguments_are_refused(system):
    refused(ProblemError, "neither linear nor angular", lambda: MomentumTask(linear="", angular=""))
    refused(ProblemError, "not all zero", lambda: DirectionTask("FL", axis=(0.0, 0.0, 0.0)))
    with pytest.raises(ProblemError, match="labels has 1 names, expected 2"):
        FunctionTask(height(), "height", labels=("z",))
    refused(UnknownNameError, "unknown site 'nose'", lambda: check_task(LookAtTask("nose"), system))
    two = ca.Function("two", [ca.SX.sym("q", 3)], [ca.SX(1, 1)])
    with pytest.raises(ProblemError, match="takes 3 coordinates"):
        check_task(FunctionTask(two, "two"), system)


KP, KD = 50.0, 9.0  # 1/s², 1/s
SAME = 1e-4  # m/s² of 10: the share by which r_p pulls


@pytest.mark.parametrize("axes", ["xyz", "zx"])
def test_the_center_of_mass_has_the_acceleration_of_its_pd_law(axes):
    system, free = system_of("quadruped"), np.full((12, 2), [-np.inf, np.inf])
    task, limits = ComTask(axes, kp=KP, kd=KD), {"force_limits": free, "ctrl_limits": free}
    law = InverseDynamicsQP(system, [task], feet(friction=2.0), torque_weight=1e-9, **limits)
    rng, rows = np.random.default_rng(0), ["xyz".index(axis) for axis in axes]
    for _ in range(5):
        q, v = stand(system, rng)
        p, J, c = (np.array(x) for x in system.center_of_mass(q, v))
        ref, shift = law.reference_at(q), 0.02 * rng.standard_normal(len(axes))
        assert_allclose(ref[law.reference_slices["com.position"]], p.ravel()[rows])
        ref[law.reference_slices["com.position"]] += shift
        ref[law.reference_slices["com.acceleration"]] = 0.3
        solution = law.solve(q, v, ref)
        assert solution.solved
        reached = (J @ solution.a + c.ravel())[rows]
        desired = 0.3 - KD * (J @ v)[rows] + KP * shift
        assert_allclose(reached, desired, atol=SAME * (1 + np.abs(desired).max()))


def test_axes_and_systems_without_a_centre_are_refused():
    refused(err.ProblemError, "letters of 'xyz'", lambda: ComTask("xx"))
    refused(err.ProblemError, "letters of 'xyz'", lambda: ComTask(""))
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    mass = from_lagrangian(q, v, kinetic=v**2, B=[[1]], name="mass")
    refused(err.ProblemError, "has no bodies", lambda: InverseDynamicsQP(mass, [ComTask()]))


def random_pose(system, rng, size=1.0):
    dv = size * rng.normal(size=system.nv)
    return np.array(system.integrate(system.tree.keyframes["stand"], dv))
