"""Tasks that are missed for 20 ticks in succession: a flag, and the row that `explain` names."""

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.description.status import Flag

G, MASS, KP = 9.81, 2.0, 100.0

LIFT = f"""<mujoco><option gravity="0 0 -{G}"/><worldbody>
  <body><joint name="x" type="slide" axis="0 0 1" range="-5 5"/>
    <geom size=".05" mass="{MASS}"/></body></worldbody>
  <actuator><motor name="hoist" joint="x"/></actuator></mujoco>"""


def lift(strongest=25.0, tasks=None, **options) -> InverseDynamicsQP:
    limits = {"force_limits": [[-strongest, strongest]]}
    return InverseDynamicsQP(
        mb.read_mjcf(LIFT), tasks or [PostureTask(kp=KP)], **(limits | options)
    )


def flag_after(law, ref, ticks=20, q=0.0):
    z = law.z0
    for _ in range(ticks):
        solution = law.solve([q], [0.0], ref, z=z)
        z = solution.z_next
    return Flag.TASK_MISSED in solution.flags


def test_twenty_ticks_are_flagged_until_the_task_is_met_in_python_and_in_c(tmp_path):
    law = lift()
    program = export_c(law, tmp_path / "law").load(flags=("-O0",))
    near, far, far_state = law.reference_at([0.001]), law.reference_at([0.1]), np.zeros(1)
    for function in (law.function, program):
        z, flagged = law.z0, []
        for ref in [far] * 19 + [near] + [far] * 22 + [near] * 2:
            out = function(q=far_state, v=far_state, ref=ref, z=z)
            assert int(out["status"]) == 0
            z, flagged = out["z_next"], [*flagged, int(out["flags"]) & Flag.TASK_MISSED > 0]
        assert flagged == [False] * (20 + 19) + [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("content", "first"), [(np.nan, 20), (np.inf, 20), (-1e9, 20), (1e9, 1), (0.5, 20)]
)
def test_any_memory_is_harmless(content, first):
    law = lift()
    z, far = law.z0, law.reference_at([0.1])
    z[-1] = content
    for tick in range(1, first + 1):
        solution = law.solve([0.0], [0.0], far, z=z)
        assert solution.solved
        z = solution.z_next
        assert (Flag.TASK_MISSED in solution.flags) == (tick >= first)
        assert 0 <= z[-1] <= 20


def test_ticks_without_a_solution_count_for_nothing():
    law = lift()
    far = law.reference_at([0.1])
    z = law.z0
    for tick in range(30):
        solution = law.solve([np.nan if tick == 15 else 0.0], [0.0], far, z=z)
        assert Flag.TASK_MISSED not in solution.flags
        z = solution.z_next
    assert z[-1] == 14


@pytest.mark.parametrize(("given", "is_missed"), [(0.52, False), (0.48, True)])
def test_half_of_the_desired_acceleration_is_missed(given, is_missed):
    """a_des is `kp e = 10 m/s²`."""
    law = lift(MASS * (G + given * 10.0))
    assert flag_after(law, law.reference_at([0.1])) == is_missed


@pytest.mark.parametrize(("error", "is_missed"), [(0.048, False), (0.050, True)])
@pytest.mark.parametrize("metre", [1.0, 1000.0])
def test_what_is_missed_by_less_than_a_twentieth_of_gravity_is_not_flagged(error, is_missed, metre):
    """The hoist holds the weight, `a = 0`, and the task wants `10 e`: 0.48, or 0.50 m/s²."""
    text = LIFT.replace(str(G), str(G * metre)).replace(".05", str(0.05 * metre))
    law = InverseDynamicsQP(
        mb.read_mjcf(text), [PostureTask(kp=10.0)], force_limits=[[0, MASS * G * metre]]
    )
    assert flag_after(law, law.reference_at([error * metre])) == is_missed


def opposed(weight, **options) -> tuple[InverseDynamicsQP, np.ndarray]:
    """Return a law with two tasks that exclude each other, and where each wants to be."""
    tasks = [
        PostureTask(kp=KP, name="up"),
        PostureTask(kp=KP, name="down", weight=weight),
    ]
    law = lift(1e3, tasks, **options)
    return law, law.reference({"up.q": [0.1], "down.q": [-0.1]})


@pytest.mark.parametrize(
    ("weight", "missed"), [(0.09, set()), (1.0, {"up", "down"}), (11.0, set()), (5.0, {"up"})]
)
def test_tasks_of_a_tenth_of_the_heaviest_weight_are_not_judged(weight, missed):
    """They are met as far as heavier ones leave them; `a = 10 (1 - w) / (1 + w)`."""
    law, ref = opposed(weight)
    assert flag_after(law, ref) == bool(missed)
    assert set(law.explain([0.0], [0.0], ref).missed) == missed


def test_a_weight_that_is_tuned_decides_which_tasks_are_judged():
    law, ref = opposed(1.0, tunable=["weights"])
    assert set(law.explain([0.0], [0.0], ref).missed) == {"up", "down"}
    light = {"down.weight.x": 0.09}
    assert not law.explain([0.0], [0.0], ref, tuning=light).missed


def test_of_levels_the_first_one_is_judged():
    law, ref = opposed(1.0, levels=[["up"], ["down"]])
    assert not flag_after(law, ref)
    weak, _ = opposed(1.0, levels=[["up"], ["down"]], force_limits=[[-25.0, 25.0]])
    assert flag_after(weak, ref)
    assert set(weak.explain([0.0], [0.0], ref).missed) == {"up"}


def test_an_error_that_is_bounded_is_judged_as_it_enters():
    """5 m pull with 500 m/s²; bounded errors with three times the braking, which motors give."""
    options = {"joint_limits": JointLimits(braking=2.0)}
    bounded, free = lift(50.0, **options), lift(50.0, bound_errors=False, **options)
    assert not flag_after(bounded, bounded.reference_at([4.0]))
    assert flag_after(free, free.reference_at([4.0]))


def test_explain_names_the_row_that_is_missed_most_by_the_task_s_own_equation():
    system = mb.read_mjcf(models.path("scara"))
    tasks = [FrameTask("tool", orientation="z", kp=KP), PostureTask(weight=1e-3)]
    law = InverseDynamicsQP(system, tasks, force_limits=np.tile([-4.0, 4.0], (system.nu, 1)))
    frame, rng, seen = system.frame("tool"), np.random.default_rng(0), set()
    for _ in range(10):
        q, goal = rng.uniform(-0.4, 0.4, (2, system.nq))
        ref, v = law.reference_at(goal), np.zeros(system.nv)
        solution, found = law.solve(q, v, ref), law.explain(q, v, ref)
        here, there = (np.array(frame.pose(each)[0]).ravel() for each in (q, goal))
        desired = KP * (there - here)
        miss = np.array(frame.jacobian(q))[:3] @ solution.a - desired
        seen.add(bool(found.missed))
        for row, by, wanted in found.missed.values():
            if row in ("x", "y", "z"):
                k = "xyz".index(row)
                assert by == pytest.approx(abs(miss[k]), rel=1e-6)
                assert wanted == pytest.approx(abs(desired[k]), rel=1e-6)
                assert f"task tool is missed: {row} by {by:.3g}" in str(found)
    assert seen == {True, False}
