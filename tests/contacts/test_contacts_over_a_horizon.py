"""Plans of a system whose feet are rows: cones hold, a schedule by names lifts a foot."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError

N, T, MU = 8, 0.04, 0.3
SLED = """
<mujoco>
  <worldbody>
    <body pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
      <geom size=".05" mass="2"/><site name="foot" pos="0 0 -.1"/>
      <body><joint name="load" type="slide" axis="1 0 0"/><geom size=".05" mass="1"/></body></body>
  </worldbody>
  <actuator><motor joint="load"/><motor joint="z"/></actuator>
</mujoco>
"""  # noqa: E501
FOOT = mb.Contact("foot", friction=MU, sides=4)


@pytest.mark.parametrize("cone", ["inner", "quadratic"])
def test_a_load_is_moved_as_fast_as_friction_holds_its_base(cone):
    """A base that sticks: the load's force is that of friction, at most mu (m g + u_z)."""
    foot = mb.Contact("foot", friction=MU, sides=4, cone=cone)
    system = mb.with_contacts(mb.read_mjcf(SLED), [foot])
    cost = mpc.Cost(Q=[0, 0, 50, 0, 0, 1], R=[1e-3, 10.0], Q_end=[0, 0, 50, 0, 0, 5])
    plans = {}
    for name, parts in (("free", []), ("cone", [mpc.ContactCones([foot])])):
        ocp = mpc.optimal_control_problem(system, N, T, [cost, *parts])
        plans[name] = mpc.solve_ocp(ocp, np.zeros(6), ocp.parameters(setpoint_q=[0, 0, 0.5]))
        assert plans[name].solved, plans[name].in_words
    share = np.cos(np.pi / 4) if cone == "inner" else 1.0
    pushes = {name: np.abs(plan.u[:, 0]) for name, plan in plans.items()}
    weight = 3 * 9.81 - plans["cone"].u[:, 1]
    assert np.all(pushes["cone"] <= MU * share * weight + 1e-3)
    assert np.isclose(pushes["cone"], MU * share * weight, atol=1e-2).any()
    assert pushes["free"].max() > 1.2 * pushes["cone"].max()
    assert np.abs(plans["cone"].x[:, :2]).max() < 1e-8


def test_a_schedule_by_the_name_of_a_contact_lifts_the_foot():
    system = mb.with_contacts(mb.read_mjcf(SLED), [FOOT]).with_mask()
    lifted = np.arange(N + 1) < 3
    mask = mb.row_mask(system, {"foot": lifted})
    assert mask.shape == (N + 1, system.nc)
    ocp = mpc.optimal_control_problem(
        system, N, T, [mpc.Cost(R=[1.0, 1.0]), mpc.ContactCones([FOOT])]
    )
    found = mpc.solve_ocp(ocp, np.zeros(6), ocp.parameters(mask=mask))
    assert found.solved, found.in_words
    fall = -9.81 / 2 * (T * np.arange(N - 2)) ** 2
    np.testing.assert_allclose(found.x[3:, 1], fall, atol=1e-6)
    model = mujoco.MjModel.from_xml_string(SLED)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = found.x[4, :3], found.x[4, 3:], found.u[4]
    mujoco.mj_forward(model, data)
    off = ca.DM(np.zeros(system.nc))
    free = mb.forward_dynamics(system)(
        q=found.x[4, :3],
        v=found.x[4, 3:],
        f=system.actuator_force(found.x[4, :3], found.x[4, 3:], found.u[4]),
        mask=off,
    )
    np.testing.assert_allclose(np.array(free["a"]).ravel(), data.qacc, atol=1e-9)


def test_a_least_load_is_kept_while_the_foot_is_on_and_not_asked_for_in_the_air():
    """The motor along z pushes with what the foot would lack; it costs, so it gives no more."""
    foot = mb.Contact("foot", friction=MU, sides=4, min_force=40.0)  # N, of 29.4 that it weighs
    system = mb.with_contacts(mb.read_mjcf(SLED), [foot]).with_mask()
    on = np.arange(N + 1) >= 3
    parts = [mpc.Cost(R=[1.0, 1.0]), mpc.ContactCones([foot]), mpc.ContactSchedule(closing=1.0)]
    ocp = mpc.optimal_control_problem(system, N, T, parts)
    found = mpc.solve_ocp(ocp, np.zeros(6), ocp.parameters(mask=mb.row_mask(system, {"foot": on})))
    assert found.solved, found.in_words
    np.testing.assert_allclose(found.u[:3, 1], 0.0, atol=1e-5)
    np.testing.assert_allclose(found.u[3:, 1], 3 * 9.81 - 40.0, atol=1e-4)


def test_masks_by_name_are_refused_where_they_are_none():
    system = mb.with_contacts(mb.read_mjcf(SLED), [FOOT])
    with pytest.raises(UnknownNameError, match="paw"):
        mb.row_mask(system, {"paw": 1})
    with pytest.raises(ShapeError, match="expected ones and zeros"):
        mb.row_mask(system, {"foot": 0.5})
    np.testing.assert_allclose(mb.row_mask(system, {"foot.n": 0}), [0, 1, 1])
    with pytest.raises(ProblemError, match="no rows of contact"):
        mpc.optimal_control_problem(
            mb.read_mjcf(SLED), N, T, [mpc.Cost(R=1.0), mpc.ContactCones([FOOT])]
        )
