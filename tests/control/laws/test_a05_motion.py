"""A05's motion laws: the desired motion, the least force, the same in all units."""

import casadi as ca
import numpy as np
import pytest
from a05_mechanisms import (
    closed_states,
    in_units,
    model_text,
    motion_under,
    outputs_of,
    projector,
    system_of,
)
from numpy.testing import assert_allclose, assert_array_equal
from support.refusals import refused

import mbcasadi.errors as err
from mbcasadi.control.law_interface.mechanism_at_state import Mechanism
from mbcasadi.control.laws import (
    LawInputs,
    LawOptions,
    chosen_coordinates,
    function_coordinates,
    joint_coordinates,
    passive_joint_control,
    projected_inverse_dynamics,
)
from mbcasadi.control.laws.task_coordinates import desired_motion, motion_gains
from mbcasadi.dynamics import forward_dynamics
from mbcasadi.formulation.metric import length_metric
from mbcasadi.system import read_mjcf

ROUNDING = 1e-9  # of numbers of order 100, poses closed to 1e-10
STATES = 40
THETA = {
    "planar_3rrr": ("x", "y", "phi"),
    "five_bar": ("left_distal", "right_distal"),
    "slider_crank": ("crank",),
    "slider_crank_driven": ("slider",),
    "prr_arm_driven": ("tip", "q2"),
}
DRIVEN = ("slider_crank_driven", "prr_arm_driven")
PASSIVE = ("planar_3rrr", "five_bar", "slider_crank")


def law_of(name, joints=None, **options):
    """Return the law of a driven mechanism or of passive joints, θ of these joints."""
    system = system_of(name)
    build = projected_inverse_dynamics if name in DRIVEN else passive_joint_control
    theta = joint_coordinates(system, joints or THETA.get(name, ("tip", "q2")))
    return build(system, theta, **{"kp": 30.0, "kd": 4.0} | free(system) | options)


def random_references(k, count, seed=3):
    return np.random.default_rng(seed).standard_normal((3 * k, count))


@pytest.mark.parametrize("name", THETA)
def test_the_error_of_theta_obeys_its_differential_equation(name):
    system, law = system_of(name), law_of(name)
    q, v = closed_states(system, STATES)
    k = len(THETA[name])
    ref = random_references(k, q.shape[1])
    out = outputs_of(law, q, v, ref)
    assert_array_equal(out["status"], 0)
    a, _ = motion_under(system, q, v, out["u"])
    dofs = [[j.name for j in system.tree.joints].index(n) for n in THETA[name]]
    expected = ref[2 * k :] + 4.0 * (ref[k : 2 * k] - v[dofs]) + 30.0 * (ref[:k] - q[dofs])
    assert np.abs(expected).max() > 10
    assert_allclose(a[dofs], expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", THETA)
def test_lambda_maps_rates_of_theta_to_admissible_velocities(name):
    system = system_of(name)
    theta = joint_coordinates(system, THETA[name])
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    ref = {slot.name: ca.SX.zeros(slot.size) for slot in theta.slots}
    at = LawInputs(q, v, ref, {}, ca.SX.ones(system.nc), ca.SX.zeros(system.nv))
    desired = desired_motion(Mechanism(system, at), theta, ref, motion_gains(theta, 0.0, 0.0))
    function = ca.Function("Lam", [q, v], [desired.Lam, theta.rows(q, v)[1]])
    poses, rates = closed_states(system, 10)
    for pose, rate in zip(poses.T, rates.T, strict=True):
        Lam, J = (np.array(x) for x in function(pose, rate))
        assert_allclose(J @ Lam, np.eye(len(theta.names)), atol=ROUNDING)
        assert_allclose(system.constraint_jacobian(pose) @ Lam, 0, atol=ROUNDING)
        assert_allclose(Lam @ (J @ rate), rate, atol=ROUNDING)  # range(Λ) = null(A)


@pytest.mark.parametrize("metric", [None, "euclidean", "length"])
@pytest.mark.parametrize("name", [*DRIVEN, "prr_arm", "five_bar"])
@pytest.mark.every(3)
def test_no_other_control_with_the_same_motion_has_a_smaller_norm(name, metric):
    system = system_of(name)
    turns = [joint.kind == "hinge" for joint in system.tree.joints]
    length = np.max(system.scales.coordinates * ~np.array(turns)) or 1.0  # of the model, m
    own, other = (np.array(length_metric(turns, size)) for size in (length, 0.3))
    W = {None: own, "euclidean": np.eye(system.nv), "length": other}[metric]
    law = law_of(name, **({} if metric is None else {"metric": W}))
    q, v = closed_states(system, 8)
    ref = random_references(law.function.size1_in("ref") // 3, q.shape[1])
    u = outputs_of(law, q, v, ref)["u"]
    a, _ = motion_under(system, q, v, u)
    weight, rng = np.linalg.inv(W), np.random.default_rng(4)
    B = system.actuation(q[:, 0]).full()
    for i in range(q.shape[1]):
        _, singular_values, Vt = np.linalg.svd(projector(system, q[:, i]) @ B)
        idle = Vt[np.sum(singular_values > 1e-9) :].T  # controls that do not move the mechanism
        size, f = np.linalg.norm(u[:, i]), B @ u[:, i]
        others = u[:, [i]] + size * idle @ rng.standard_normal((idle.shape[1], 20))
        same, _ = motion_under(system, np.tile(q[:, [i]], 20), np.tile(v[:, [i]], 20), others)
        assert_allclose(same, np.tile(a[:, [i]], 20), atol=1e-9 * size)
        least, theirs = f @ weight @ f, np.einsum("ik,ij,jk->k", B @ others, weight, B @ others)
        assert np.all(theirs >= least * (1 - 1e-12))
        assert idle.shape[1] == 0 or theirs.max() > 1.001 * least
        slope = idle.T @ B.T @ weight @ f  # along idle controls: the least, not only less
        assert_allclose(slope, 0, atol=1e-9 * size * np.abs(weight).max())


@pytest.mark.parametrize("name", PASSIVE)
def test_the_force_is_that_of_the_papers_equations_for_passive_joints(name):
    """(I + H) f∥ with H = -(I - P) Q⁺ (I - B), Q = I - B - P + B P  [A05, eq. 57-62]."""
    system, law = system_of(name), law_of(name)
    q, v = closed_states(system, 10)
    ref = random_references(len(THETA[name]), q.shape[1])
    u = outputs_of(law, q, v, ref)["u"]
    desired = law.desired.map(q.shape[1])(q=q, v=v, ref=ref)["a"].full()
    eye, select = np.eye(system.nv), system.actuation(q[:, 0]).full()
    onto = select @ select.T
    for i in range(q.shape[1]):
        pose, rate = q[:, i], v[:, i]
        P = projector(system, pose)
        h = (system.bias_force(pose, rate) - system.passive_force(pose, rate)).full().ravel()
        along = P @ (system.mass_matrix(pose).full() @ desired[:, i] + h)
        Q = eye - onto - P + onto @ P
        H = -(eye - P) @ np.linalg.pinv(Q, 1e-9) @ (eye - onto)
        assert_allclose(select @ u[:, i], (eye + H) @ along, rtol=1e-7, atol=1e-7)


def units_laws(metric):
    """Return laws of the driven PRR arm in m and rad, and in mm and degrees."""
    si, turns = system_of("prr_arm_driven"), np.array([False, True, True, False])
    scale = np.where(turns, 180 / np.pi, 1000.0)
    other, back = in_units(si, scale)
    q = ca.SX.sym("q", 4)
    theta = ca.Function("theta", [q], [ca.vertcat(q[0], q[1] + q[2])], ["q"], ["theta"])
    theta_mm = ca.Function("theta", [q], [theta(back(q))], ["q"], ["theta"])
    laws = []
    for system, function, length in ((si, theta, 0.3), (other, theta_mm, 0.3 * 1000 * np.pi / 180)):
        W = np.array(length_metric(turns, length)) if metric else None
        coordinates = function_coordinates(system, function)
        laws.append(projected_inverse_dynamics(system, coordinates, metric=W, **free(si)))
    return laws, scale


@pytest.mark.parametrize("metric", [False, True])
def test_a_metric_makes_the_control_the_same_in_all_units(metric):
    (here, there), scale = units_laws(metric)
    q, v = closed_states(system_of("prr_arm_driven"), 20)
    ref = random_references(2, q.shape[1])
    ours = outputs_of(here, q, v, ref)["u"]
    theirs = outputs_of(there, scale[:, None] * q, scale[:, None] * v, ref)["u"]
    if metric:
        assert_allclose(theirs, ours, rtol=1e-8, atol=1e-8)
    else:  # and without one it is not
        assert np.abs(theirs - ours).max() > 0.1 * np.abs(ours).max()


def test_with_a_motor_at_every_joint_the_law_for_passive_joints_is_the_projected_one():
    system = system_of("slider_crank_driven")
    theta = joint_coordinates(system, ("crank",))
    q, v = closed_states(system, 20)
    ref = random_references(1, q.shape[1])
    one, other = (
        outputs_of(build(system, theta), q, v, ref)["u"]
        for build in (projected_inverse_dynamics, passive_joint_control)
    )
    assert np.abs(one).max() > 1
    assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_at_the_singular_pose_one_motor_is_not_enough_and_three_are():
    pole = np.array([[np.pi / 2], [0.0], [np.pi / 2]])
    few, many = (
        outputs_of(law_of(name, ("crank",)), pole, 0 * pole, np.array([np.pi / 2, 0.0, 3.0]))
        for name in ("slider_crank", "slider_crank_driven")
    )
    assert (few["status"], many["status"]) == (2, 0)
    assert np.abs(few["residual"]).max() > 0.1
    a, _ = motion_under(system_of("slider_crank_driven"), pole, 0 * pole, many["u"])
    assert_allclose(a[0], 3.0, rtol=1e-9)


def test_a_coordinate_at_its_dead_point_is_not_promised():
    """With the crank along the slider's axis the slider cannot accelerate at will."""
    dead = np.array([[0.0], [2.0], [0.0]])
    assert_allclose(system_of("slider_crank").constraint(dead), 0, atol=1e-12)
    for name in ("slider_crank", "slider_crank_driven"):
        law = law_of(name, ("slider",))
        out = outputs_of(law, dead, 0 * dead, np.array([2.0, 0.0, 3.0]))
        assert out["status"] == 2
        assert_allclose(out["residual"][:, 0], [0, 0, 0, 3.0], atol=1e-9)
        assert outputs_of(law, dead, 0 * dead, np.array([2.0, 0.0, 0.0]))["status"] == 0


@pytest.mark.parametrize("root", [np.eye(4), np.diag([1.0, 2.0, 3.0, 4.0])])
def test_motions_that_theta_leaves_open_are_damped_on_request(root):
    """... in the metric, by the part of v that is orthogonal to the motion of theta."""
    system = system_of("five_bar")
    q, v = closed_states(system, 5)
    less, damped = (
        motion_under(system, q, v, outputs_of(law, q, v, np.zeros(3))["u"])[0]
        for law in (
            law_of("five_bar", ("left_proximal",), damping=rate, metric=root @ root)
            for rate in (1.0, 8.0)
        )
    )
    assert_allclose(less[0], damped[0], rtol=1e-8)  # θ does not feel it
    assert np.abs(damped - less).max() > 1
    back = np.linalg.inv(root)
    for i in range(q.shape[1]):
        A = system.constraint_jacobian(q[:, i]).full() @ back
        P = np.eye(4) - np.linalg.pinv(A, 1e-9) @ A
        row = P @ back[0]
        open_part = back @ (P - np.outer(row, row) / (row @ row)) @ root @ v[:, i]
        assert_allclose((damped - less)[:, i], -7.0 * open_part, atol=1e-7)


def test_a_mask_that_opens_the_loop_changes_the_output_and_not_the_law():
    system = read_mjcf(model_text("slider_crank_driven"), switchable=True)
    law = projected_inverse_dynamics(
        system,
        joint_coordinates(system, ("crank",)),
        options=LawOptions(ctrl_limits=np.tile([-1e6, 1e6], (3, 1))),
    )
    q, v = closed_states(system_of("slider_crank_driven"), 10)
    ref = np.tile([[1.0], [0.5], [2.0]], q.shape[1])
    for on in (1.0, 0.0):
        out = outputs_of(law, q, v, ref, mask=[on])
        assert_array_equal(out["status"], 0)
        fd = forward_dynamics(system, "lagrange", derivatives=False).map(q.shape[1])
        a = fd(q=q, v=v, f=out["u"], mask=np.full((3, q.shape[1]), on))["a"].full()
        desired = 2.0 + 20.0 * (0.5 - v[0]) + 100.0 * (1.0 - q[0])
        assert_allclose(a[0], desired, rtol=1e-8)
        if not on:  # the open parts keep their velocity: least acceleration
            assert_allclose(a[1:], 0, atol=1e-8)
        else:
            assert np.abs(a[1:]).max() > 1


def test_joints_are_chosen_so_that_they_determine_the_motion():
    for name in ("planar_3rrr", "five_bar", "slider_crank", "prr_arm"):
        system = system_of(name)
        theta = chosen_coordinates(system)
        names = [joint.name for joint in system.tree.joints]
        k = round(np.trace(projector(system, system.tree.q0)))
        A = np.array(system.constraint_jacobian(system.tree.q0)) * system.scales.coordinates
        Z = np.linalg.svd(A)[2][::-1].T  # in rad and lengths of the model
        assert len(theta.names) == k
        dofs = [names.index(n) for n in theta.names]
        spread = np.linalg.svd(Z[dofs, :k])[1]
        assert spread.min() > 0.2
    motors = ("proximal_a", "proximal_b", "proximal_c")
    coordinates = chosen_coordinates(system_of("planar_3rrr"), among=(*motors, "x"))
    assert len(coordinates.names) == 3


def test_options_that_do_not_fit_are_refused_in_words():
    system = system_of("five_bar")
    with pytest.raises(err.ProblemError, match=r"no actuator drives.*passive_joint_control"):
        projected_inverse_dynamics(system)
    refused(err.UnknownNameError, "'left_proximal'", lambda: joint_coordinates(system, ("elbow",)))
    with pytest.raises(err.ProblemError, match="left_distal do not determine the 2 motions"):
        chosen_coordinates(system, among=("left_distal",))
    refused(err.ShapeError, "metric has", lambda: passive_joint_control(system, metric=np.eye(3)))
    with pytest.raises(err.ProblemError, match="kp has shape"):
        passive_joint_control(system, kp=(1.0, 2.0, 3.0))
    q = ca.SX.sym("q", 3)
    with pytest.raises(err.ShapeError, match="expected one input"):
        function_coordinates(system, ca.Function("theta", [q], [q[0]]))


def free(system):
    return {"options": LawOptions(ctrl_limits=np.tile([-1e6, 1e6], (system.nu, 1)))}
