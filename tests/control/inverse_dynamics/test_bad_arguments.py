"""What a user can get wrong is told in words, before anything is built."""

import casadi as ca
import numpy as np
import pytest
from mechanisms import feet, quadruped_controller, system_of

from mbcasadi import errors as err
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.system import from_lagrangian

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
    with pytest.raises(error, match=words):
        build(**arguments)


@pytest.mark.parametrize("axes", ["xx", "w", "xyzz"])
def test_axes_are_letters_of_xyz(axes):
    with pytest.raises(err.ProblemError, match="letters of 'xyz'"):
        FrameTask("trunk", position=axes)


def test_a_frame_task_controls_something():
    with pytest.raises(err.ProblemError, match="no axis"):
        FrameTask("trunk", position="", orientation="")


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
    with pytest.raises(err.ProblemError, match="depend on time"):
        InverseDynamicsQP(moving, [POSTURE])


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
    np.testing.assert_allclose(solution.a, [2.0, 1.0], rtol=1e-6)
    # 1.25 a_0 = u - 1: the second coordinate adds a quarter of its mass.
    np.testing.assert_allclose(solution.u, [3.5], rtol=1e-6)
    with pytest.raises(err.ProblemError, match="no joint names"):
        InverseDynamicsQP(system, [PostureTask(("q0",))])


def test_the_controller_describes_every_signal():
    controller = quadruped_controller(fallback="hold")
    data = controller.controller
    assert [signal.name for signal in data.inputs] == data.function.name_in()
    assert [signal.name for signal in data.outputs] == data.function.name_out()
    for i, signal in enumerate(data.inputs):
        assert len(signal.components) == len(signal.units) == data.function.numel_in(i)
        assert len(set(signal.components)) == len(signal.components)
    for i, signal in enumerate(data.outputs):
        assert len(signal.components) == len(signal.units) == data.function.numel_out(i)
    for i, signal in enumerate(data.monitors):
        assert data.monitor.name_out(i) == signal.name
        assert len(signal.components) == len(signal.units) == data.monitor.numel_out(i)
    np.testing.assert_array_equal(data.u_max[:3], [23.7, 23.7, 45.43])
    assert data.z0.size == 28 + 12 + 1  # active set, held control, ticks that the base is missed
    assert data.period == controller.period == 1e-3
    assert data.contacts[0].frame == "FL"
    q = controller.system.tree.keyframes["stand"]
    ref = controller.reference_at(q)
    ref[controller.reference_slices["base.position"]] += [0.0, 0.0, 0.01]
    seen = data.monitor(q=q, v=np.zeros(18), ref=ref, mask=np.ones(4))
    np.testing.assert_allclose(
        np.array(seen["error"]).ravel()[:6], [0, 0, 0.01, 0, 0, 0], atol=1e-12
    )
    forces = np.array(seen["contact_force"]).reshape(4, 3)
    np.testing.assert_allclose(forces, controller.solve(q, np.zeros(18), ref).contact_forces)
