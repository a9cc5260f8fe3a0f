"""`explain` names a minimal set of limits, judged by linear programs over a, p, lam and f."""

from dataclasses import replace

import numpy as np
import pytest
from full_problem import equations, full_problem
from scipy.optimize import linprog
from support.mechanisms_of_control import feet, quadruped_controller, stand, system_of
from support.refusals import refused

import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP, JointLimits, PostureTask, SoftLimit
from mbcasadi.description.status import Status
from mbcasadi.errors import UnknownNameError

BUILT = 5  # 200 were judged once
FEASIBLE, INFEASIBLE = 1e-6, 1e-8
"""Least violation over the largest bound, around the 1e-7 from which `explain` sees one."""


def law_of(system, contacts, torques, **options):
    tasks = [FrameTask("trunk", kind="body", weight=100.0, name="base"), PostureTask(kp=50.0)]
    limits = np.outer(torques, [-1.0, 1.0])
    return InverseDynamicsQP(system, tasks, contacts, force_limits=limits, **options)


def named_rows(system, law, full, size):
    """Return `C z <= d` over z = (a, p, lam, f) of each limit, by its name."""
    nv, nu, nf = system.nv, system.nu, len(full.J)
    of_p = np.hstack([np.zeros((nu, nv)), np.eye(nu), np.zeros((nu, size - nv - nu))])
    of_f = np.hstack([np.zeros((nf, size - nf)), np.eye(nf)])
    named = {}
    for i, name in enumerate(system.actuator_names):
        low, high = full.limits[i]
        named[f"torque of {name}"] = (np.array([of_p[i], -of_p[i]]), np.array([high, -low]))
    for k, contact in enumerate(law.contacts):
        faces = full.pyramid[4 * k : 4 * k + 4] @ of_f
        named[f"cone of {contact.frame}"] = (faces, np.zeros(4))
        low, high = full.normal_range[k]
        row = of_f[3 * k]
        named[f"normal force of {contact.frame}"] = (np.array([row, -row]), np.array([high, -low]))
    return named


def least_violation(E, e, rows):
    """Return the least largest violation of the rows, of unit length, over z with E z = e."""
    C, d = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    kept = d < 1e29
    C, d = C[kept], d[kept]
    size = np.abs(d).max() + 1.0
    n = C.shape[1]
    answer = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([C, -np.ones((len(C), 1))]),
        b_ub=d / size,
        A_eq=np.hstack([E, np.zeros((len(E), 1))]),
        b_eq=e / size,
        bounds=[(None, None)] * n + [(0, None)],
        method="highs",
    )
    assert answer.success, answer.message
    return answer.x[-1]


def test_what_excludes_each_other_is_infeasible_and_all_but_any_one_of_it_is_feasible():
    """Forces of feet that are too large or too small for the motors, cones and the weight."""
    system, rng = system_of("quadruped"), np.random.default_rng(8)
    law = law_of(system, feet(), rng.uniform(6.0, 25.0, system.nu), tunable=("friction", "forces"))
    built = sizes = 0
    kinds = set()
    while built < BUILT:
        contacts = contacts_of_some_feet(rng)
        q, v = stand(system, rng, spread=0.15, speed=1.0, key="stand")
        found = law.explain(q, v, tuning=tuned(contacts)).excluding
        full = full_problem(system, q, v, [], contacts, law.ranges.force, weights=law.force_weights)
        E, e, *_ = equations(full)
        named = named_rows(system, law, full, E.shape[1])
        if not found:
            assert least_violation(E, e, list(named.values())) < FEASIBLE
            continue
        chosen = {name: named[name] for name in found}
        assert least_violation(E, e, list(chosen.values())) > INFEASIBLE
        for name in found if len(found) > 1 else ():
            rest = [rows for other, rows in chosen.items() if other != name]
            assert least_violation(E, e, rest) < FEASIBLE, (found, name)
        built += 1
        sizes += len(found)
        kinds |= {name.split(" of ")[0] for name in found}
    assert kinds == {"torque", "cone", "normal force"}
    assert sizes > 2 * BUILT


def contacts_of_some_feet(rng):
    """Feet whose forces have ranges that are hard to meet, or not."""
    return [
        replace(foot, friction=mu, min_force=low, max_force=low + width)
        for foot, mu, low, width in zip(
            feet(),
            rng.uniform(0.05, 0.7, 4),
            rng.choice([2.0, 20.0, 60.0], 4),
            rng.choice([5.0, 400.0], 4),
            strict=True,
        )
    ]


def tuned(contacts):
    fields = ("friction", "min_force", "max_force")
    return {f"{x.frame}.{field}": getattr(x, field) for x in contacts for field in fields}


def test_a_task_that_has_to_be_met_counts_as_a_limit():
    system = system_of("quadruped")
    law = law_of(system, feet(), np.full(system.nu, 40.0))
    q, v = system.tree.keyframes["stand"], np.zeros(system.nv)
    ref = law.reference_at(q)
    # friction of 0.7 gives 6.9 m/s²
    ref[law.reference_slices["base.acceleration"]] = [9.0, 0.0, 0.0]
    found = law.explain(q, v, ref, exactly=("base",))
    assert "task base" in found.excluding
    assert any(name.startswith("cone of ") for name in found.excluding)
    assert str(found).endswith(" exclude each other")
    assert law.explain(q, v, ref).excluding == ()
    refused(UnknownNameError, "'base', 'posture'", lambda: law.explain(q, v, exactly=("trunk",)))


SLIDER = """<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0" range="-1 1"
    limited="true"/><geom size=".1" mass="2"/></body></worldbody><actuator>
    <motor name="push" joint="x" ctrllimited="true" ctrlrange="-3 3"/></actuator></mujoco>"""


def test_an_active_limit_says_what_it_costs_which_task():
    """A mass of 2 kg, pushed by 3 N, is to have 10 m/s²: it misses 8.5 m/s²."""
    slider = mb.read_mjcf(SLIDER)
    law = InverseDynamicsQP(slider, [PostureTask(kp=100.0, weight=4.0)], torque_weight=1e-9)
    found = law.explain([0.0], [0.0], [0.1, 0.0, 0.0])
    assert found.status == Status.SOLVED
    assert found.excluding == ()
    assert found.costs["torque of push"]["posture"] == pytest.approx(4 * 8.5**2 / 2, rel=1e-6)
    assert found.task_costs["posture"] == pytest.approx(4 * 8.5**2 / 2, rel=1e-6)
    assert "torque of push costs posture 144 (of 144)" in str(found)
    rest = law.explain([0.0], [0.0])
    assert not rest.costs
    assert str(rest) == "no limits exclude each other; none costs a task anything"


BODY = """<mujoco><worldbody><body name="ball"><freejoint/><geom size=".1"/><site name="rotor"/>
  </body></worldbody>
  <actuator><motor site="rotor" gear="0 0 1 0 0 0"/></actuator></mujoco>"""


def test_a_joint_that_cannot_slow_down_as_its_limit_demands_is_named():
    limits = JointLimits(velocity=1.0, braking=100.0)
    slider = mb.read_mjcf(SLIDER)
    law = InverseDynamicsQP(slider, [PostureTask()], joint_limits=limits)
    found = law.explain([0.0], [2.0])  # 100 m/s² of 3 N on 2 kg
    assert found.excluding == ()
    asked, given = found.unviable["joint 'x'"]
    assert asked == pytest.approx(100.0)
    assert given == pytest.approx(1.5, rel=0.02)
    assert "joint 'x' cannot stop before its limit: it needs 100" in str(found)


def test_bad_inputs_are_named_with_index_and_value():
    law = InverseDynamicsQP(mb.read_mjcf(SLIDER), [PostureTask()], tunable=("gains",))
    assert str(law.explain([0.0], [np.nan])) == "bad input: v[0] (x) = nan"
    ref = law.reference_at([0.0])
    ref[2] = np.inf
    name = law.controller.inputs[2].components[2]
    assert law.explain([0.0], [0.0], ref).bad == (f"ref[2] ({name}) = inf",)
    gain = law.tuning[0].name
    assert f"tuning[0] ({gain}) = -1, expected" in str(
        law.explain([0.0], [0.0], tuning={gain: -1.0})
    )
    z = law.z0
    z[0] = np.nan
    found = law.explain([0.0], [0.0], z=z)
    assert found.status == 0
    assert found.bad[0].startswith("z[0] (")
    floating = mb.read_mjcf(BODY)
    q = np.zeros(7)
    drone = InverseDynamicsQP(floating, [FrameTask("ball", kind="body")])
    assert "q[3:7] = [0.0, 0.0, 0.0, 0.0]" in str(drone.explain(q, np.zeros(6)))


def test_rows_of_one_limit_have_its_name():
    soft = (SoftLimit("joints", linear=1.0),)
    law = quadruped_controller(joint_limits=JointLimits(velocity=15.0, braking=200.0), soft=soft)
    limits = {row.name: row.limit for row in law.stages.about}
    assert limits["actuator 'FL_hip': force range"] == "torque of FL_hip"
    assert limits["contact 'FL': friction, face 3"] == "cone of FL"
    for end in ("", ", lower side", ", slack"):
        assert limits[f"joint 'FL_calf': range{end}"] == "range of FL_calf"
