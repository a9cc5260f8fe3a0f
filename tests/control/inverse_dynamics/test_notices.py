"""Flags of solved ticks: open gaps, falling bases, missed tasks; what is believed of solvers."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen import export_c
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask
from mbcasadi.description import Contact
from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Flag, Status
from mbcasadi.qp.solver import candidate_fun
from mbcasadi.system import read_mjcf
from mbcasadi.validation import ScenarioOptions

BODY = """<mujoco><option gravity="0 0 {gravity}"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="trunk" pos="0 0 1"><freejoint/><geom size=".1" mass="2"/>
    <body pos="0 0 -.2"><joint name="leg" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".1"/></body>
    <site name="rotor"/></body></worldbody>
  <actuator><motor joint="leg"/>{actuators}</actuator>{constraints}</mujoco>"""
ROTOR = '<motor site="rotor" gear="0 0 1 0 0 0"/>'
HOOK = '<equality><connect body1="trunk" body2="world" anchor="0 0 0"/></equality>'


def body(gravity=-9.81, actuators="", constraints=""):
    return mb.read_mjcf(BODY.format(gravity=gravity, actuators=actuators, constraints=constraints))


@pytest.fixture(scope="module")
def standing():
    """Return our quadruped's law with its own geometry as contacts, and the pose on its feet."""
    system = mb.read_mjcf(models.path("quadruped"))
    feet = [
        c for c in mb.contacts_of(system, ground="floor") if c.geom2 in ("FL", "FR", "RL", "RR")
    ]
    q = np.array(system.tree.keyframes["stand"])
    q[2] -= min(float(foot.gap(q)[0]) for foot in feet)
    tasks = [FrameTask("trunk", kind="body"), PostureTask(weight=1e-3)]
    return InverseDynamicsQP(system, tasks, [foot.as_contact() for foot in feet]), q


def flags(law, q, mask):
    return law.solve(q, np.zeros(law.system.nv), law.reference_at(q), mask=mask).flags


def test_a_foot_in_the_air_that_is_on_is_an_open_gap(standing):
    law, q = standing
    lifted, off = q.copy(), np.ones(4)
    lifted[next(j.qpos for j in law.system.tree.joints if j.name == "FL_calf")] -= 0.3
    off[[contact.frame.startswith("FL") for contact in law.contacts].index(True)] = 0
    assert flags(law, q, np.ones(4)) == 0
    assert flags(law, lifted, np.ones(4)) == Flag.OPEN_GAP
    assert flags(law, lifted, off) == 0


def test_a_base_without_any_contact_falls(standing):
    law, q = standing
    assert Flag.UNCARRIED in flags(law, q, np.zeros(4))
    assert Flag.UNCARRIED not in flags(law, q, [1, 0, 0, 0])


@pytest.mark.parametrize(
    ("options", "off"),
    [({"actuators": ROTOR}, 0), ({"gravity": 0}, 0), ({"constraints": HOOK}, int(Flag.UNCARRIED))],
)
def test_what_actuators_constraints_or_no_gravity_carry_is_no_doubt(options, off):
    law = InverseDynamicsQP(body(**options), [PostureTask(("leg",))])
    q = np.array(law.system.tree.q0)
    n = len(law.mask_names)
    assert int(flags(law, q, np.ones(n))) & int(Flag.UNCARRIED) == 0
    assert int(flags(law, q, np.zeros(n))) & int(Flag.UNCARRIED) == off


def test_a_base_that_nothing_can_carry_is_named_at_build():
    with pytest.warns(UserWarning, match="falls: neither contacts nor constraints nor actuators"):
        law = InverseDynamicsQP(body(), [PostureTask(("leg",))])
    assert Flag.UNCARRIED in flags(law, np.array(law.system.tree.q0), [])


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
    tasks = [PostureTask(kp=KP, name="up"), PostureTask(kp=KP, name="down", weight=weight)]
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


# Three links in a plane carry a tip; a slide beside them carries nothing.
ARM = """
<mujoco model="arm"><option gravity="0 0 0"/>
  <worldbody>
    <body><joint name="j1" axis="0 0 1"/><geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
      <body pos="1 0 0"><joint name="j2" axis="0 0 1"/>
        <geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
        <body pos="1 0 0"><joint name="j3" axis="0 0 1"/>
          <geom type="sphere" size="0.05" pos="1 0 0" mass="1"/>
          <site name="tip" pos="1 0 0"/></body></body></body>
    <body pos="0 0 1"><joint name="beside" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1"/></body></worldbody>
  <default><motor ctrlrange="-60 60"/></default>
  <actuator><motor name="m1" joint="j1"/><motor name="m2" joint="j2"/><motor name="m3" joint="j3"/>
    <motor name="m4" joint="beside"/></actuator></mujoco>
"""


def arm_law(weight: float, **options: object) -> InverseDynamicsQP:
    tip = FrameTask("tip", position="xy", orientation="", kp=100.0)
    return InverseDynamicsQP(
        mb.read_mjcf(ARM), [tip, PostureTask(kp=25.0, weight=weight)], period=0.005, **options
    )


def test_a_light_posture_of_a_redundant_arm_is_secondary_but_for_the_free_joint() -> None:
    joints = tuple(f"posture.j{i}" for i in (1, 2, 3))
    assert arm_law(1e-3).controller.secondary == joints
    assert arm_law(0.5).controller.secondary == ()
    assert arm_law(0.0).controller.secondary == (*joints, "posture.beside")
    levels = arm_law(1.0, levels=[["tip"], ["posture"]])
    assert levels.controller.secondary == joints


def test_tasks_that_can_be_met_together_are_all_judged() -> None:
    def secondary(*tasks):
        return InverseDynamicsQP(mb.read_mjcf(ARM), tasks).controller.secondary

    tip = FrameTask("tip", position="xy", orientation="")
    assert secondary(tip, PostureTask(joints=["j3"], weight=1e-3)) == ()
    both = PostureTask(joints=["j2", "j3"], weight=1e-3)
    assert secondary(tip, both) == ("posture.j2", "posture.j3")
    loop = InverseDynamicsQP(mb.read_mjcf(models.path("four_bar")), [PostureTask()])
    assert loop.controller.secondary == ()  # three joints, one freedom: a consistent target


@pytest.mark.parametrize("weight", [1e-3, 0.5])
def test_a_posture_that_the_tip_pulls_away_fails_the_run_only_where_it_is_judged(weight):
    law, q0 = arm_law(weight), np.array([0.4, 0.5, 0.6, 0.0])
    ref = law.reference_at(q0)
    ref[law.reference_slices["tip.position"]] -= [1.2, 0.3]  # the joints turn by more than 0.5 rad
    coarse = ScenarioOptions(timestep=5e-3)
    report = mb.validate(law, ARM, 2.0, q0=q0, reference=ref, scenario=coarse)
    run = report.runs[0]
    assert max(row.rms for row in run.tracking if row.name.startswith("posture.j")) > 0.3
    assert run.passed == (weight == 1e-3)
    assert ("Reported, not judged: posture (3 rows)" in str(report)) == (weight == 1e-3)


BOX_BESIDE_A_STRONG_MOTOR = """<mujoco><worldbody>
  <body name="box"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1"/>
    <site name="sole" pos="0 0 -.1"/></body>
  <body><joint name="rotor" axis="0 0 1" armature="1000"/><geom size=".1" mass="1"/></body>
  </worldbody><actuator>
  <motor name="x" joint="x" ctrlrange="-50 50"/><motor name="z" joint="z" ctrlrange="-50 50"/>
  <motor name="rotor" joint="rotor" ctrlrange="-1e7 1e7"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def controller():
    contacts = [Contact("sole", friction=0.5, sides=4)]
    return InverseDynamicsQP(
        read_mjcf(BOX_BESIDE_A_STRONG_MOTOR), [PostureTask(kp=100.0)], contacts
    )


def finished(controller, ref, missed):
    """Return status and residuals of an answer that misses its cone by that many newtons."""
    stages = controller.stages.qp
    given = {"q": np.zeros(3), "v": np.zeros(3), "ref": ref, "mask": [1.0], "z": controller.z0}
    built, x = stages.build(**given), candidate_fun(stages, "daqp")(**given)["x"]
    row = next(i for i, name in enumerate(controller.stages.row_names) if "friction" in name)
    A, lower, upper = built["A_qp"][row, :], float(built["lba"][row]), float(built["uba"][row])
    to = upper + missed if upper < 1e29 else lower - missed
    x = x + A.T * (to - A @ x) / ca.sumsqr(A)
    none = 0 * built["lba"]
    given |= {"carry": built["carry"], "x": x, "lam_a": none, "active": none}
    out = stages.finish(**given, flag=int(SolverFlag.OPTIMAL))
    return int(out["status"]), np.array(out["residual"]).ravel()


@pytest.mark.parametrize("turn", [0.0, 90.0])
def test_a_missed_cone_is_seen_beside_strong_motors(controller, turn):
    ref = controller.reference_at(np.array([0.0, 0.0, turn]))
    asked = np.abs(controller.solve(np.zeros(3), np.zeros(3), ref).p[2])
    assert asked >= 1e6 * (turn > 0)
    noise = 1e-12 * (1 + asked)  # N: what a solver may leave
    assert finished(controller, ref, noise)[1][2] <= 1e-6
    weight = 9.81
    status, residual = finished(controller, ref, 1e-3 * weight)
    assert residual[2] > 1e-6
    assert status == Status.FAILED


@pytest.mark.long
def test_a_weight_that_is_tuned_decides_which_tasks_are_judged_and_of_levels_the_first_is():
    law, ref = opposed(1.0, tunable=["weights"])
    assert set(law.explain([0.0], [0.0], ref).missed) == {"up", "down"}
    assert not law.explain([0.0], [0.0], ref, tuning={"down.weight.x": 0.09}).missed
    levels = {"levels": [["up"], ["down"]]}
    assert not flag_after(opposed(1.0, **levels)[0], ref)
    weak, _ = opposed(1.0, **levels, force_limits=[[-25.0, 25.0]])
    assert flag_after(weak, ref)
    assert set(weak.explain([0.0], [0.0], ref).missed) == {"up"}
