"""Plans whose unknowns are forces: a quadruped pushes itself up, in MuJoCo's dynamics; refusals."""

import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import (
    DisturbanceObserver,
    FrameTask,
    HalfSpace,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
)
from mbcasadi.errors import ProblemError

LEGS = ("FL", "FR", "RL", "RR")
N, T = 4, 0.04


def law_of(cone="inner", friction=0.6, **options):
    system = mb.read_mjcf(models.path("quadruped"))
    tasks = [
        FrameTask("trunk", kind="body", kp=60.0, weight=10.0, name="trunk"),
        PostureTask(weight=1e-3),
    ]
    contacts = [mb.Contact(leg, friction=friction, sides=4, cone=cone) for leg in LEGS]
    return InverseDynamicsQP(system, tasks, contacts, **options)


def test_a_plan_keeps_equations_cones_and_limits_and_its_accelerations_are_mujoco_s():
    law = law_of()
    stand = np.array(law.system.tree.keyframes["stand"])
    ref = law.reference_at(stand)
    ref[law.reference_slices["trunk.position"]][2] += 0.04
    roof = HalfSpace("trunk", -(stand[2] + 0.02), 5.0, normal=(0, 0, -1), kind="body")
    parts = [mpc.StageForces(law), roof, mpc.StageBounds(v=[[-0.6, 0.6]] * law.system.nv)]
    ocp = mpc.optimal_control_problem(law.system, N, T, parts)
    slices = {name: ref[place] for name, place in law.reference_slices.items()}
    start = np.r_[stand, np.zeros(law.system.nv)]
    found = mpc.solve_ocp(ocp, start, ocp.parameters(slices))
    assert found.solved, found.in_words
    height = found.x[:, 2] - stand[2]
    assert 0.01 < height.max() < 0.02 + 1e-6
    model = mujoco.MjModel.from_xml_path(str(models.path("quadruped")))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data, nu, nv = mujoco.MjData(model), law.system.nu, law.system.nv
    for x, u in zip(found.x, found.u, strict=False):
        data.qpos[:], data.qvel[:] = np.split(x, [law.system.nq])
        data.ctrl[:] = u[:nu]
        mujoco.mj_forward(model, data)
        push = np.zeros(nv)
        for k, leg in enumerate(LEGS):
            f = u[nu + nv :][3 * k : 3 * k + 3]  # n, t1, t2 of a level ground
            assert np.hypot(f[1], f[2]) <= 0.6 * f[0] + 1e-6
            J = np.zeros((3, nv))
            mujoco.mj_jacSite(model, data, J, None, data.site(leg).id)
            push += J.T @ f[[1, 2, 0]]
        data.qfrc_applied[:] = push
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, u[nu : nu + nv], atol=1e-5)


@pytest.mark.parametrize(("cone", "friction", "N"), [("inner", 0.6, 4), ("quadratic", 0.2, 2)])
def test_limits_of_the_law_bound_the_samples_and_round_cones_hold(cone, friction, N):
    """A knee that the rising trunk stretches stops at its margin; on ice feet reach their cones."""
    knee = "FL_calf"
    reach = JointLimits((knee,), margin=0.83, braking=50.0)
    law = law_of(cone, friction, joint_limits=reach, bound_errors=False)
    limits, stand = law.system.limits, np.array(law.system.tree.keyframes["stand"])
    ref = law.reference_at(stand)
    ref[law.reference_slices["trunk.position"]] += [0.0, 0.05, 0.08]
    slices = {name: ref[place] for name, place in law.reference_slices.items()}
    ocp = mpc.optimal_control_problem(law.system, N, T, [mpc.StageForces(law)])
    found = mpc.solve_ocp(ocp, np.r_[stand, np.zeros(law.system.nv)], ocp.parameters(slices))
    assert found.solved, found.in_words
    angle = found.x[:, next(j.qpos for j in law.system.tree.joints if j.name == knee)].max()
    stop = limits.joint[limits.joint_names.index(knee)][1] - reach.margin
    forces = found.u[:, law.system.nu + law.system.nv :][:, :12].reshape(N, 4, 3)
    left = friction * forces[..., 0] - np.hypot(forces[..., 1], forces[..., 2])
    if cone == "inner":
        assert angle == pytest.approx(stop, abs=1e-6)
        assert left.min() > -1e-6
    else:
        assert angle < stop
        assert -1e-6 < left.min() < 5e-3  # N: of a cone whose apex is rounded


def test_what_a_plan_does_not_have_is_refused_by_name():
    for options, named in (
        ({"observer": DisturbanceObserver(5.0)}, "'observer', which remembers or measures"),
        ({"levels": [["trunk"], ["posture"]]}, "levels"),
        ({"delay": 1}, "a delay"),
    ):
        law = law_of(**options)
        with pytest.raises(ProblemError, match=named):
            mpc.optimal_control_problem(law.system, N, T, [mpc.StageForces(law)])
    law = law_of()
    ocp = mpc.optimal_control_problem(law.system, N, T, [mpc.StageForces(law)])
    with pytest.raises(ProblemError, match="expected a problem in the controls"):
        mpc.real_time_iteration(ocp)
    other = mb.read_mjcf(models.path("quadruped"))
    with pytest.raises(ProblemError, match="expected the controller's own system"):
        mpc.optimal_control_problem(other, N, T, [mpc.StageForces(law)])
