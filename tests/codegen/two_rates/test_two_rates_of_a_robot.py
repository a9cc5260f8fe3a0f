"""Two rates of a robot on two feet: the C is the composition of its parts, and can miss plans."""

from collections import deque

import mujoco
import numpy as np
import pytest
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi.codegen import Supervision, TickEvent
from mbcasadi.mpc.whole_body.whole_body_mpc import whole_body_mpc

pytestmark = pytest.mark.long

PERIOD, HORIZON = 0.02, 4
PERIODS = 6
COMMAND = [0.1, 0.0, 0.0]
LIMIT = 60.0  # N, N m
CLOSE = 1e-7  # N, N m: two solvers of the plan agree to 1e-9
SOLVED, BAD_INPUT, NO_PLAN = 0, 3, 100


@pytest.fixture(scope="module")
def robot():
    feet = [mb.Contact(f"foot_{name}", friction=0.8, sides=4) for name in LEGS]
    return whole_body_mpc(mb.read_mjcf(MODEL), HORIZON, PERIOD, feet, name="two_feet")


@pytest.fixture(scope="module")
def project(robot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("c") / "out"
    return mb.export_two_rates(robot, folder, name="two_feet", mujoco_plugin=True)


@pytest.fixture
def run(project):
    return project.load(flags=("-O0",))


def measured(robot, t):
    """Return q and v of a robot that moves a little in all coordinates."""
    system = robot.law.system
    phases = np.arange(system.nv)
    motion = 0.003 * np.sin(9 * t + phases)
    q = np.array(system.integrate(system.tree.q0, motion)).ravel()
    return q, 0.003 * 9 * np.cos(9 * t + phases)


def call(function, **inputs):
    names = [name for name in function.name_in() if name in inputs]
    return {k: v.full().ravel() for k, v in function(**{n: inputs[n] for n in names}).items()}


def composition(robot, command, ticks, last_plan=np.inf):
    """Yield t, q, v, the status of a plan or None, and the law's outputs, as in `outer_law`.

    After `last_plan`, s, there are no plans: the last one is followed to its end, then the law
    misses its reference.
    """
    plan, law = robot.plan.controller, robot.law.controller
    z_plan, z_law, z = plan.z0, law.z0, robot.z0
    learned = np.zeros(robot.law.system.nv)
    pending, acts, begin = deque([robot.u0] * robot.delay), robot.u0, 0.0
    for k in range(ticks):
        t = k * law.period
        q, v = measured(robot, t)
        status = None
        if k % robot.every == 0 and pending and t <= last_plan + robot.delay * PERIOD:
            acts, begin = pending.popleft(), t
        if k % robot.every == 0 and t <= last_plan:
            acting = {"plan": acts, "age": t - begin, "disturbance": learned}
            asked = call(robot.references, q=q, v=v, command=command, t=t, z=z, **acting)
            first = {key: asked[f"first_{key}"] for key in ("q", "v")}
            planned = call(plan.function, **first, ref=asked["ref"], z=z_plan)
            z, z_plan, status = asked["z_next"], planned["z_next"], int(planned["status"][0])
            pending.append(planned["plan"])
        followed = call(robot.follow, plan=acts, age=t - begin, t=t)
        if t - begin > HORIZON * PERIOD + law.period / 4:
            followed["ref"] = np.full_like(followed["ref"], np.nan)
        out = call(law.function, q=q, v=v, z=z_law, **followed)
        z_law, learned = out["z_next"], out["disturbance"]
        yield t, q, v, status, out


def test_lock_step_is_the_composition_of_the_parts(robot, run):
    """The plans come from two solvers, that of the C and that of Python."""
    statuses, moves = set(), []
    for t, q, v, planned, out in composition(robot, COMMAND, PERIODS * robot.every):
        if planned is not None:
            statuses.add((planned, int(run.plan(q, v, COMMAND, t)["code"])))
        found = run.tick(q, v, t)
        assert found["code"] == out["status"]
        assert found["u"] == pytest.approx(out["u"], abs=CLOSE)
        moves.append(out["u"])
    assert statuses == {(SOLVED, SOLVED)}
    assert np.ptp(moves, axis=0).min() > 1e5 * CLOSE, "the plans matter"
    assert np.abs(out["disturbance"]).max() > 0.1, "and what the law has learned"


def test_without_plans_the_last_one_is_followed_and_then_the_law_holds(robot, run):
    codes, ages = [], []
    for t, q, v, planned, out in composition(robot, COMMAND, 9 * robot.every, last_plan=PERIOD):
        if planned is not None:
            run.plan(q, v, COMMAND, t)
        found = run.tick(q, v, t)
        assert found["u"] == pytest.approx(out["u"], abs=CLOSE)
        assert found["status"] == out["status"]
        assert np.all(np.abs(found["u"]) <= LIMIT)
        codes.append(int(found["code"]))
        ages.append(found["age"][0])
    end = (2 + HORIZON) * robot.every  # the last plan acts from 2 periods on
    assert codes == [SOLVED] * (end + 1) + [NO_PLAN] * (len(codes) - end - 1)
    assert ages[end] == pytest.approx(HORIZON * PERIOD)
    assert np.isnan(ages[-1])


def test_a_measurement_that_is_no_number_neither_plans_nor_moves(robot, run):
    q, v = measured(robot, 0.0)
    run.plan(q, v, COMMAND, 0.0)
    good = run.tick(q, v, 0.0)
    assert run.plan(np.full_like(q, np.nan), v, COMMAND, PERIOD)["code"] == BAD_INPUT
    out = run.tick(q, np.full_like(v, np.nan), PERIOD)
    assert out["code"] == BAD_INPUT
    assert np.all(np.abs(out["u"]) <= LIMIT)
    assert out["age"] == pytest.approx(0), "the plan before acts"
    assert run.tick(q, v, PERIOD + 0.002)["code"] == good["code"] == SOLVED


def test_the_state_of_a_controller_is_the_first_part_of_its_memory(robot, project, run):
    other = project.load(flags=("-O0",))
    q, v = measured(robot, 0.0)
    for k in range(3 * robot.every):
        t = k * 0.002
        if k % robot.every == 0:
            run.plan(q, v, COMMAND, t)
        run.tick(q, v, t)
    size = project.manifest["state_bytes"] // 8
    assert size < run.block.size / 4
    other.block[:size] = run.block[:size]
    for k in range(3 * robot.every, 5 * robot.every):
        t = k * 0.002
        if k % robot.every == 0:
            plans = [each.plan(q, v, COMMAND, t)["plan"] for each in (run, other)]
            assert np.array_equal(*plans)
        assert np.array_equal(*(each.tick(q, v, t)["u"] for each in (run, other)))


@pytest.mark.parametrize("supervision", [None, Supervision(rate=500.0)], ids=["alone", "watched"])
def test_the_plugin_of_mujoco_is_lock_step_by_hand(robot, project, supervision, tmp_path):
    """In MuJoCo the robot hangs in the air: what is compared is the control, bit for bit."""
    name = "two_feet" if supervision is None else "watched_feet"
    if supervision is not None:
        own = {"mujoco_plugin": True, "supervision": supervision}
        project = mb.export_two_rates(robot, tmp_path / "out", name=name, **own)
    run = project.load(flags=("-O0",))
    library = project.build_mujoco_plugin(mujoco.__path__[0], flags=("-O0",))
    mujoco.mj_loadPluginLibrary(str(library.path))
    file = f"{name}_mujoco.xml"
    snippet = (project.folder / file).read_bytes()
    included = MODEL.replace("<worldbody>", f'<include file="{file}"/><worldbody>', 1)
    model = mujoco.MjModel.from_xml_string(included, {file: snippet})
    plain = mujoco.MjModel.from_xml_string(MODEL)
    data, other = mujoco.MjData(model), mujoco.MjData(plain)
    place = project.manifest["mujoco"]["userdata"]["command"]
    for _ in range(2):  # the second time after a reset
        mujoco.mj_resetData(model, data)
        mujoco.mj_resetData(plain, other)
        run.reset()
        data.userdata[place["switch"]] = 1
        data.userdata[place["first"] :][: place["size"]] = COMMAND
        for k in range(3 * robot.every):
            q, v = other.qpos.copy(), other.qvel.copy()
            if k % robot.every == 0:
                run.plan(q, v, COMMAND, other.time)
            other.ctrl[:] = run.tick(q, v, other.time)["u"]
            mujoco.mj_step(plain, other)
            mujoco.mj_step(model, data)
            assert np.array_equal(data.ctrl, other.ctrl)
            assert np.array_equal(data.qpos, other.qpos)
        limited = supervision and TickEvent.RATE_LIMITED in run.supervised.events
        assert limited or np.abs(data.ctrl).max() > 1
        copy = mujoco.MjData(model)
        mujoco.mj_copyData(copy, model, data)
        for each in (data, copy):  # the next tick plans
            mujoco.mj_step(model, each)
        assert np.array_equal(copy.ctrl, data.ctrl)
        assert copy.plugin_state.tobytes() == data.plugin_state.tobytes(), (
            "integers may look like NaN"
        )
