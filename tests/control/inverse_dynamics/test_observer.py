"""The disturbance observer: its recursion in closed form, in MuJoCo, and in the generated C."""

import numpy as np
import pytest
from mechanisms import feet, stand, system_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import DisturbanceObserver, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant

H, MASS, PUSH = 1e-3, 2.5, 7.0

SLIDE = f"""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody><body name="cart"><joint name="x" type="slide" axis="1 0 0"/>
    <geom size=".1" mass="{MASS}"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-100 100"/></actuator>
</mujoco>
"""


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_constant_push_is_learned_as_the_recursion_says(delay):
    observer = DisturbanceObserver(bandwidth=30.0)
    law = InverseDynamicsQP(
        mb.read_mjcf(SLIDE), [PostureTask()], observer=observer, period=H, delay=delay
    )
    gamma, d = 1 - np.exp(-30.0 * H), [0.0]
    x, v, z, waiting = 0.0, 0.3, law.z0, [0.0] * delay
    for k in range(250):
        solution = law.solve([x], [v], z=z, ref=[0.2, 0.0, 0.0][: law.nref])
        assert solution.disturbance[0] == pytest.approx(d[k], rel=1e-6, abs=1e-9)
        d.append(d[k] + gamma * (PUSH - d[k - 1 - delay]) if k > delay else 0.0)
        z = solution.z_next
        waiting.append(float(solution.u[0]))
        a = (waiting.pop(0) + PUSH) / MASS
        x, v = x + H * v + H**2 / 2 * a, v + H * a
    assert d[-1] == pytest.approx(PUSH, rel=0.01)


QUADRUPED_TASKS = [
    FrameTask("trunk", kind="body", kp=100.0, weight=100.0, name="base"),
    PostureTask(kp=50.0, weight=1e-3),
]


def quadruped(observer, **options):
    return InverseDynamicsQP(
        system_of("quadruped"), QUADRUPED_TASKS, feet(), observer=observer, period=0.002, **options
    )


def rings(observer, **options):
    """Return a regulator of the planar 3-RRR robot: loops, passive joints."""
    system = system_of("planar_3rrr")
    task = FrameTask("platform", kind="body", position="xy", orientation="", kp=100.0)
    return InverseDynamicsQP(system, [task, PostureTask(weight=1e-4)], observer=observer, **options)


def settled(law, q, *, ticks, delay=0, push=None, **options):
    """Return the tasks' error behind a run in MuJoCo at the reference of its start."""
    plant = Plant(models.path(law.system.name), timestep=law.period, rigid=True, **options)
    plant.reset(q)
    if push is not None:
        plant.apply_force(push)
    ref, z, waiting = law.reference_at(plant.q), law.z0, []
    for _ in range(ticks):
        outputs = law.function(q=plant.q, v=plant.v, ref=ref, mask=on(law), z=z)
        assert float(outputs["status"]) == 0
        z = outputs["z_next"]
        waiting.append(np.array(outputs["u"]).ravel())
        plant.step(waiting[max(len(waiting) - 1 - delay, 0)])
    monitor = law.controller.monitor
    inputs = {"q": plant.q, "v": plant.v, "ref": ref, "mask": on(law), "z": z}
    return np.array(monitor(**{name: inputs[name] for name in monitor.name_in()})["error"]).ravel()


def on(law):
    return np.ones(len(law.mask_names))


def test_a_heavier_quadruped_stands_where_it_should():
    q = system_of("quadruped").tree.keyframes["stand"]
    runs = {
        name: settled(quadruped(observer, delay=1), q, ticks=1500, delay=1, perturb={"mass": 0.1})
        for name, observer in {
            "without": None,
            "with": DisturbanceObserver(bandwidth=5.0),
        }.items()
    }
    assert abs(runs["without"][2]) > 5e-3
    assert np.abs(runs["with"][:3]).max() < 3e-4


def test_a_push_on_a_closed_loop_leaves_no_error():
    q, push = system_of("planar_3rrr").tree.q0, np.zeros(system_of("planar_3rrr").nv)
    push[:3] = [0.4, -0.2, 0.3]
    without = settled(rings(None), q, ticks=2000, push=push)[:2]
    assert np.linalg.norm(without) > 1e-3
    learned = settled(rings(DisturbanceObserver()), q, ticks=2000, push=push)[:2]
    assert np.linalg.norm(learned) < 0.02 * np.linalg.norm(without)


def test_the_generated_c_learns_as_the_function(tmp_path):
    law = rings(DisturbanceObserver(bandwidth=20.0), delay=1)
    compiled = export_c(law.controller, tmp_path / "law").load()
    rng, z = np.random.default_rng(4), law.z0
    for k in range(60):
        q = law.system.tree.q0
        v = 1e-3 * rng.standard_normal(law.system.nv)
        if k % 20 == 19:  # a state of another law, or of bad memory
            z = rng.choice([0.0, 1.0, np.nan, 1e300, -1e9, 3e4], law.z0.size)
        inputs = {"q": q, "v": v, "ref": law.reference_at(q), "mask": on(law), "z": z}
        in_c, expected = compiled(**inputs), law.function(**inputs)
        for name, value in expected.items():
            value = np.array(value).ravel()
            scale = max(1.0, float(np.abs(value[np.isfinite(value)]).max(initial=0.0)))
            found = np.array(in_c[name]).ravel()
            np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-9 * scale, err_msg=name)
        z = np.array(expected["z_next"]).ravel()
        assert np.all(np.isfinite(z))


def test_a_tick_after_bad_memory_is_solved():
    law, rng = quadruped(DisturbanceObserver()), np.random.default_rng(5)
    q, v = stand(law.system, rng, spread=0.02, key="stand")
    for wild in (np.nan, np.inf, -1e19, 1e300):
        z = law.solve(q, v, z=np.full(law.z0.size, wild)).z_next
        assert np.all(np.isfinite(z))
        assert law.solve(q, v, z=z).status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bandwidth": 400.0}, "expected at most"),
        ({"bandwidth": 100.0, "delay": 5}, "expected at most"),
        ({"bandwidth": 0.0}, "positive"),
    ],
)
def test_an_observer_that_cannot_work_is_refused(options, words):
    delay = options.pop("delay", 0)
    with pytest.raises(ProblemError, match=words):
        rings(DisturbanceObserver(**options), delay=delay)
