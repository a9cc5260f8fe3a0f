"""Whatever comes in, what goes out is safe; errors of a user are told in words."""

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from support.mechanisms_of_control import feet, quadruped_controller, stand, system_of
from support.refusals import refused

from mbcasadi import errors as err
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.description.status import Status
from mbcasadi.system import from_lagrangian, read_mjcf

BAD = (np.nan, np.inf, -np.inf, 1e300)
SERVOS = """<mujoco><worldbody>
  <body><joint name="lift" type="slide" axis="0 0 1"/><geom size=".1" mass="2"/>
    <body pos=".2 0 0"><joint name="turn" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/></body></body></worldbody>
  <actuator>
    <position name="lift" joint="lift" kp="500" kv="20" ctrlrange="-1 1" forcerange="-40 40"/>
    <general name="turn" joint="turn" gainprm="3" biastype="affine" biasprm=".2 -1 -.3"
      ctrlrange="-2 2"/></actuator></mujoco>"""
FILTERED = """<mujoco><worldbody>
  <body><joint name="turn" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
    <body pos=".3 0 0"><joint name="bend" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></body></worldbody>
  <actuator>
    <general name="turn" joint="turn" dyntype="filter" dynprm=".02" gainprm="5" ctrlrange="-20 20"/>
    <general name="bend" joint="bend" dyntype="integrator" gainprm="2" ctrlrange="-900 900"
      actlimited="true" actrange="-4 4"/></actuator></mujoco>"""


def numbers(value):
    return np.array(value).ravel()


def call(controller, **changed):
    """Return the four outputs at the standing pose, some inputs changed."""
    system = controller.system
    q = system.tree.keyframes.get("stand", system.tree.q0)
    inputs = {
        "q": q,
        "v": np.zeros(system.nv),
        "ref": controller.reference_at(q),
        "mask": np.ones(len(controller.mask_names)),
        "z": controller.z0,
    }
    outputs = controller.function(**(inputs | changed))
    return {name: numbers(value) for name, value in outputs.items()}


def test_nan_without_a_reference_is_bad_input():
    law = quadruped_controller()
    q, v = np.array(law.system.tree.q0), np.zeros(law.system.nv)
    q[3] = np.nan
    assert law.solve(q, v).status == Status.BAD_INPUT


def test_a_zero_quaternion_is_bad_input_and_a_scaled_one_is_normalised():
    controller = quadruped_controller()
    q = controller.system.tree.keyframes["stand"].copy()
    good = call(controller)
    q[3:7] *= 1.2
    scaled = call(controller, q=q)
    assert_allclose(scaled["u"], good["u"], atol=1e-6)  # N m, rounding through the QP
    q[3:7] = 0.0
    assert call(controller, q=q)["status"] == Status.BAD_INPUT


def test_the_state_may_hold_anything():
    controller = quadruped_controller(fallback="hold")
    good, limits = call(controller), controller.controller
    for bad in (*BAD, -1e9, 0.7):
        z = np.full(controller.z0.size, bad)
        out = call(controller, z=z)
        assert out["status"] == Status.SOLVED
        assert_array_equal(out["u"], good["u"])
        stuck = call(controller, z=z, v=np.full(18, np.nan))
        assert np.all((stuck["u"] >= limits.u_min) & (stuck["u"] <= limits.u_max))


def test_the_authors_own_law_is_the_fallback_inside_the_limits():
    sizes = {"q": 19, "v": 18, "ref": 55, "mask": 4}
    symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    law = ca.Function("law", symbols, [ca.vertcat(100.0, -symbols[1][7:18])], list(sizes), ["u"])
    limits = ((-5.0, 5.0),) * 12  # the feet press more than the motors can hold
    controller = quadruped_controller(press=400.0, fallback_law=law, force_limits=limits)
    v = np.linspace(-1, 1, 18)
    out = call(controller, v=v)
    assert out["status"] == Status.INFEASIBLE
    assert_allclose(out["u"][0], 5.0)
    assert_allclose(out["u"][1:], -v[7:])


def test_an_infeasible_problem_has_its_status_and_names_the_rows_in_the_way():
    controller = quadruped_controller(fallback="zero", press=400.0)
    solution = controller.solve(controller.system.tree.keyframes["stand"], np.zeros(18))
    assert solution.status == Status.INFEASIBLE
    assert np.all(solution.u == 0.0)
    text = solution.explain()
    assert "infeasible" in text
    assert "contact 'FL': normal force" in text or "force range" in text


def assert_right(controller, q, v, mask, solution):
    """Assert the equations of motion, the cones and the optimality of a solution."""
    system = controller.system
    M, B = np.array(system.mass_matrix(q)), np.array(system.actuation(q))
    force = B @ solution.u + numbers(system.passive_force(q, v)) - numbers(system.bias_force(q, v))
    axes, moving = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]]), [np.zeros(1)]
    pairs = zip(controller.contacts, solution.contact_forces, mask, strict=True)
    for contact, f, on in pairs:
        frame = system.frame(contact.frame)
        J = axes @ np.array(frame.jacobian(q))[:3]
        force += J.T @ f
        if on:
            moving.append(J @ solution.a + axes @ numbers(frame.bias(q, v))[:3])
            assert np.hypot(f[1], f[2]) <= contact.friction * f[0] + 1e-4  # N
        else:
            assert np.all(f == 0.0)
    assert_allclose(M @ solution.a, force, atol=1e-8 * (1 + np.abs(force).max()))
    assert_allclose(np.hstack(moving), 0.0, atol=1e-6)
    qp = solution.problem
    value, L = qp.A_qp @ solution.p, np.linalg.cholesky(qp.H)
    assert np.all((value <= qp.uba + 1e-4) & (value >= qp.lba - 1e-4))
    active = np.vstack([-qp.A_qp[qp.uba - value < 1e-4], qp.A_qp[value - qp.lba < 1e-4]])
    # The gradient has to be a non-negative combination of the active rows.
    gradient = np.linalg.solve(L, qp.H @ solution.p + qp.g)
    rest = (
        nnls(np.linalg.solve(L, active.T), gradient)[1] if len(active) else np.linalg.norm(gradient)
    )
    assert rest <= 1e-5 * (1 + np.linalg.norm(np.linalg.solve(L, qp.g)))


def test_servos_are_driven_by_force_and_answer_with_their_control():
    system = read_mjcf(SERVOS)
    controller = InverseDynamicsQP(
        system, [PostureTask(kp=30.0)], torque_weight=1e-9, servo_plant="start"
    )
    q, v, ref = np.array([0.1, 0.3]), np.array([0.2, -0.4]), np.array([0.11, 0.35, 0, 0, 0, 0])
    solution = controller.solve(q, v, ref)
    assert solution.solved
    M, h = np.array(system.mass_matrix(q)), numbers(system.bias_force(q, v))
    force = numbers(system.actuator_force(q, v, solution.u)) + numbers(system.passive_force(q, v))
    wanted = 30.0 * (ref[:2] - q) - 2 * np.sqrt(30.0) * v
    assert_allclose(np.linalg.solve(M, force - h), wanted, rtol=1e-6)


def test_a_servos_force_range_bounds_its_force_and_its_ctrl_range_its_control():
    system = read_mjcf(SERVOS)
    controller = InverseDynamicsQP(system, [PostureTask(kp=900.0, weight=(100.0, 1.0))])
    solution = controller.solve(np.zeros(2), np.zeros(2), np.array([2.0, -2.0, 0, 0, 0, 0]))
    assert solution.solved
    assert solution.p[0] == pytest.approx(40.0)  # 500 N/m within ±40 N, before ±1 m
    assert solution.u[0] == pytest.approx(0.08)
    assert abs(solution.u[1]) == pytest.approx(2.0)


def test_actuators_with_activation_reach_the_force_after_one_period():
    system = read_mjcf(FILTERED)
    controller = InverseDynamicsQP(system, [PostureTask(kp=30.0)], torque_weight=1e-9)
    q, v, act = np.array([0.4, -0.2]), np.array([0.1, 0.3]), np.array([0.5, -0.3])
    solution = controller.solve(q, v, np.array([0.41, -0.19, 0, 0, 0, 0]), act=act)
    assert solution.solved
    rate = numbers(system.act_dot(q, v, solution.u, act))
    reached = act + controller.period * rate
    inside = np.abs(solution.u) < np.array([20.0, 900.0]) - 1e-6
    assert_allclose((np.array([5.0, 2.0]) * reached)[inside], solution.p[inside])
    assert np.any(inside)


POSTURE = PostureTask()


def build(tasks=(POSTURE,), contacts=(), **options):
    return InverseDynamicsQP(system_of("quadruped"), list(tasks), list(contacts), **options)


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (err.ProblemError, "no tasks", {"tasks": ()}),
        (err.ProblemError, "all task weights are zero", {"tasks": [PostureTask(weight=0.0)]}),
        (err.ProblemError, "different names", {"tasks": [POSTURE, POSTURE]}),
        (err.ProblemError, "weight = -1", {"tasks": [PostureTask(weight=-1.0)]}),
        (err.ProblemError, "kp = nan", {"tasks": [PostureTask(kp=np.nan)]}),
        (err.ProblemError, r"kp has shape \(2,\), expected", {"tasks": [PostureTask(kp=(1, 2))]}),
        (err.UnknownNameError, "'FL_hip'", {"tasks": [PostureTask(("knee",))]}),
        (err.ProblemError, r"expected names, \['knee'\]", {"tasks": [PostureTask("knee")]}),
        (err.UnknownNameError, "'trunk', 'FL'", {"tasks": [FrameTask("hand")]}),
        (err.UnknownNameError, "unknown site 'toe'", {"contacts": [Contact("toe")]}),
        (err.UnknownNameError, "kind of frame", {"contacts": [Contact("FL", kind="joint")]}),
        (err.ProblemError, "friction 0", {"contacts": feet(friction=0.0)}),
        (err.ProblemError, "2 sides", {"contacts": feet(sides=2)}),
        (err.ProblemError, "1000000 sides; .* at most 360", {"contacts": feet(sides=10**6)}),
        (err.ProblemError, "sides = 7.5; expected a whole", {"contacts": feet(sides=7.5)}),
        (err.ProblemError, "sides = nan; expected a whole", {"contacts": feet(sides=float("nan"))}),
        (err.ProblemError, "normal", {"contacts": feet(normal=(0.0, 0.0, 0.0))}),
        (err.ProblemError, "min_force <= max_force", {"contacts": feet(min_force=9, max_force=1)}),
        (err.ProblemError, "fixed to the world", {"contacts": [Contact("world", kind="body")]}),
        (err.ShapeError, r"expected \(12, 2\)", {"force_limits": [[-1, 1]]}),
        (err.ShapeError, "without NaN", {"ctrl_limits": np.full((12, 2), np.nan)}),
        (err.ProblemError, "5.0 is above -5.0", {"force_limits": np.tile([5.0, -5.0], (12, 1))}),
        (err.ProblemError, "torque_weight = 0", {"torque_weight": 0.0}),
        (err.ProblemError, "0 contact forces", {"force_reference": True, "force_weight": 1.0}),
        (err.ProblemError, "force_weight = 0", {"force_reference": True, "contacts": feet()}),
        (err.ProblemError, "period = -1", {"period": -1.0}),
        (err.ProblemError, "tolerance = inf", {"tolerance": np.inf}),
        (err.ProblemError, "stabilisation = -3", {"stabilisation": -3.0}),
        (err.ProblemError, "'safe', 'hold', 'zero'", {"fallback": "stop"}),
        (err.ProblemError, "'body', 'none'", {"internal_forces": "all"}),
        (err.ProblemError, "C identifier", {"name": "my law"}),
        (err.SolverError, "'daqp', 'qrqp'", {"solver": "ipopt"}),
        (err.ProblemError, "fallback law", {"fallback_law": ca.Function("f", [], [ca.SX(1)])}),
    ],
)
def test_a_contradiction_is_named(error, words, arguments):
    refused(error, words, lambda: build(**arguments))


@pytest.mark.parametrize("axes", ["xx", "w", "xyzz"])
def test_axes_are_letters_of_xyz(axes):
    refused(err.ProblemError, "letters of 'xyz'", lambda: FrameTask("trunk", position=axes))


def test_a_frame_task_controls_something():
    refused(err.ProblemError, "no axis", lambda: FrameTask("trunk", position="", orientation=""))


def test_wrong_shapes_are_told_when_solving():
    controller = quadruped_controller()
    with pytest.raises(err.ShapeError, match=r"q has shape \(3,\), expected \(19,\)"):
        controller.solve(np.zeros(3), np.zeros(18))
    with pytest.raises(err.ShapeError, match=r"mask has shape \(5,\), expected \(4,\)"):
        controller.solve(np.zeros(19), np.zeros(18), mask=np.ones(5))


def test_a_system_without_actuators_or_with_a_clock_is_refused():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    with pytest.raises(err.ProblemError, match="no actuators"):
        InverseDynamicsQP(from_lagrangian(q, v, kinetic=ca.sumsqr(v)), [POSTURE])
    moving = from_lagrangian(q, v, kinetic=ca.sumsqr(v), B=np.eye(2), phi=q[0] - ca.sin(t), t=t)
    refused(err.ProblemError, "depend on time", lambda: InverseDynamicsQP(moving, [POSTURE]))


def test_a_lagrangian_with_a_redundant_loop_is_controlled():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    row = q[0] - 2 * q[1]
    system = from_lagrangian(
        q, v, kinetic=0.5 * ca.sumsqr(v), potential=q[0], B=np.array([[1.0], [0.0]]),
        phi=ca.vertcat(row, 3 * row), ctrl_range=[[-5, 5]],
    )  # fmt: skip
    controller = InverseDynamicsQP(system, [PostureTask(kp=10.0)], torque_weight=1e-8)
    assert controller.mask_names == ("phi0", "phi1")
    solution = controller.solve([0.2, 0.1], [0.0, 0.0], [0.4, 0.2, 0, 0, 0, 0])
    assert solution.solved
    assert_allclose(solution.a, [2.0, 1.0], rtol=1e-6)
    # 1.25 a_0 = u - 1: the second coordinate adds a quarter of its mass.
    assert_allclose(solution.u, [3.5], rtol=1e-6)
    with pytest.raises(err.ProblemError, match="no joint names"):
        InverseDynamicsQP(system, [PostureTask(("q0",))])


@pytest.mark.parametrize(("solver", "count"), [("daqp", 600), ("qrqp", 100)])
@pytest.mark.every(2)
def test_no_answer_that_is_called_solved_is_wrong(solver, count, is_thorough):
    """Residuals are recomputed here, from the System's matrices and the QP as data."""
    rng, controller = np.random.default_rng(77), quadruped_controller(solver=solver)
    system, counts, limits = controller.system, [0] * 5, controller.controller
    count = count if is_thorough else count // 4
    for _ in range(count):
        q, v = stand(system, rng, spread=0.25, speed=1.0, key="stand")
        mask, ref = rng.random(4) < 0.8, controller.reference_at(system.tree.keyframes["stand"])
        solution = controller.solve(q, v, ref, mask=mask)
        counts[solution.status] += 1
        assert np.all((solution.u >= limits.u_min) & (solution.u <= limits.u_max))
        if solution.status == Status.SOLVED:
            assert_right(controller, q, v, mask, solution)
        elif solution.status == Status.INFEASIBLE and solver == "daqp":
            assert "infeasible; these" in solution.explain()
    if solver == "daqp":
        assert counts[Status.SUBOPTIMAL] == counts[Status.FAILED] == counts[Status.BAD_INPUT] == 0
        assert counts[Status.SOLVED] > count / 2


def test_the_controller_describes_its_contacts_monitors_and_memory():
    controller = quadruped_controller(fallback="hold")
    data, q = controller.controller, controller.system.tree.keyframes["stand"]
    assert_array_equal(data.u_max[:3], [23.7, 23.7, 45.43])
    assert data.z0.size == 28 + 12 + 1  # active set, held control, ticks that the base is missed
    assert data.contacts[0].frame == "FL"
    ref = controller.reference_at(q)
    ref[controller.reference_slices["base.position"]] += [0.0, 0.0, 0.01]
    seen = data.monitor(q=q, v=np.zeros(18), ref=ref, mask=np.ones(4))
    assert_allclose(np.array(seen["error"]).ravel()[:6], [0, 0, 0.01, 0, 0, 0], atol=1e-12)
    forces = np.array(seen["contact_force"]).reshape(4, 3)
    solution = controller.solve(q, np.zeros(18), ref)
    assert_allclose(forces, solution.contact_forces)
    tick = controller.function(q=q, v=np.zeros(18), ref=ref, mask=np.ones(4), z=controller.z0)
    assert_array_equal(np.array(tick["u"]).ravel(), solution.u)
    assert_array_equal(np.array(tick["z_next"]).ravel(), solution.z_next)


def test_without_contacts_a_monitor_solves_no_problem():
    """Targets and errors are those of the state; the solver is no part of the Function."""
    law = InverseDynamicsQP(system_of("four_bar"), [PostureTask(("crank",), kp=4.0)])
    monitor, q, v = law.controller.monitor, np.array(law.system.tree.q0), np.zeros(3)
    assert "candidate" not in [function.name() for function in monitor.find_functions()]
    seen = monitor(q=q, v=v, ref=law.reference_at(q) + np.array([0.1, 0, 0]))
    assert_allclose(float(seen["error"]), 0.1, rtol=1e-12)
    assert seen["contact_force"].numel() == 0
