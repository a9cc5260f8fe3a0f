"""Wheels: rows of the lowest point of a disc, with rollers and without."""

import casadi as ca
import mujoco
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.contacts.wheels import wheel_rows
from mbcasadi.control import FrameTask, InverseDynamicsQP, check_task
from mbcasadi.errors import ProblemError

RADIUS, TRACK, LENGTH = 0.05, 0.3, 0.2
STEP = 1e-6
"""S, of difference quotients."""
SLOPE_TOL = 1e-7
"""Of a central difference over STEP, with rounding 1e-16/STEP."""

WHEEL = """
<body name="{name}" pos="{x} {y} 0" quat="0.7071067811865476 -0.7071067811865476 0 0">
  <joint name="{name}" axis="0 0 1"/>
  <geom type="cylinder" size="0.05 0.01" mass="0.2"/>
</body>"""
PLACES = {"FL": (0.2, 0.15), "FR": (0.2, -0.15), "RL": (-0.2, 0.15), "RR": (-0.2, -0.15)}


def car(*names):
    """A floating box with wheels, the axle of each along y of the box, no ground."""
    wheels = "".join(
        WHEEL.format(name=name, x=PLACES[name][0], y=PLACES[name][1]) for name in names
    )
    return f"""
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 0.05">
      <freejoint/><geom type="box" size="0.2 0.1 0.03" mass="5"/>{wheels}
    </body>
  </worldbody>
  <actuator>{"".join(f'<motor joint="{name}"/>' for name in names)}</actuator>
</mujoco>"""


def rows_of(system, name, wheel):
    """Return (q, v) → (J, c, of_lam) of a wheel on the level ground."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    axes = ca.DM(contact_axes(np.array([0.0, 0.0, 1.0])))
    rows = wheel_rows(system.frame(name, "body"), wheel, axes, (q, v))
    return ca.Function("rows", [q, v], [*rows])


def moved(model, q, v, time):
    """Return q after a time of motion with v."""
    after = q.copy()
    mujoco.mj_integratePos(model, after, v, time)
    return after


def random_state(model, seed):
    """Return a tilted pose and a velocity."""
    rng = np.random.default_rng(seed)
    q = moved(model, model.qpos0.copy(), 0.4 * rng.standard_normal(model.nv), 1.0)
    return q, rng.standard_normal(model.nv)


@pytest.mark.parametrize("roller", [None, 0.0, np.pi / 4])
def test_rows_of_a_wheel_have_their_own_rate_as_bias(roller):
    model = mujoco.MjModel.from_xml_string(car("FL"))
    system = mb.read_mjcf(car("FL"))
    wheel = mb.Wheel(radius=RADIUS, center=(0.0, 0.0, 0.02), roller=roller)
    rows = rows_of(system, "FL", wheel)
    for seed in range(3):
        q, v = random_state(model, seed)
        ahead, back = (
            np.array(rows(moved(model, q, v, s * STEP), v)[0] @ v).ravel() for s in (1, -1)
        )
        rate = (ahead - back) / (2 * STEP)
        assert np.abs(rate).max() > 0.1  # there is something to find
        np.testing.assert_allclose(np.array(rows(q, v)[1]).ravel(), rate, atol=SLOPE_TOL)


def test_a_wheel_has_the_velocity_of_the_material_at_its_lowest_point():
    model = mujoco.MjModel.from_xml_string(car("FL"))
    data, body = mujoco.MjData(model), 2
    rows = rows_of(mb.read_mjcf(car("FL")), "FL", mb.Wheel(radius=RADIUS, center=(0, 0, 0.02)))
    angles = np.linspace(0, 2 * np.pi, 200_001)
    rim = np.stack([RADIUS * np.cos(angles), RADIUS * np.sin(angles), 0.02 + 0 * angles])
    for seed in range(3):
        data.qpos[:], v = random_state(model, seed)
        mujoco.mj_forward(model, data)
        points = data.xpos[body][:, None] + data.xmat[body].reshape(3, 3) @ rim
        J = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, J, None, points[:, np.argmin(points[2])], body)
        held, _, of_lam = (np.array(x) for x in rows(data.qpos, v))
        s = of_lam @ held @ v  # n, t1, t2 = z, x, y
        np.testing.assert_allclose(s[[1, 2, 0]], J @ v, atol=1e-4)  # of the rim's steps
        np.testing.assert_allclose(of_lam.T @ of_lam, np.eye(3), atol=1e-12)


def unicycle(heading, left, right, left_rate, right_rate):
    """Return v and a of the base and its wheels, `v = r (l + r)/2`, `ω = r (r - l)/b`."""
    speed, turn = RADIUS * (left + right) / 2, RADIUS * (right - left) / TRACK
    faster, turning = (
        RADIUS * (left_rate + right_rate) / 2,
        RADIUS * (right_rate - left_rate) / TRACK,
    )
    ahead, across = np.array([np.cos(heading), np.sin(heading)]), turn * speed
    side = np.array([-ahead[1], ahead[0]])
    v = [*speed * ahead, 0, 0, 0, turn, left, right]
    a = [*(faster * ahead + across * side), 0, 0, 0, turning, left_rate, right_rate]
    return np.array(v), np.array(a)


def test_two_wheels_on_one_axle_move_as_a_unicycle():
    names = ("FL", "FR")
    text = car(*names).replace('pos="0.2 ', 'pos="0 ')
    system, wheel = mb.read_mjcf(text), mb.Wheel(axle=(0, 0, 2.0), radius=RADIUS)
    rows = [rows_of(system, name, wheel) for name in names]
    heading = 0.7
    q = np.array(system.tree.q0)
    q[3:7] = [np.cos(heading / 2), 0, 0, np.sin(heading / 2)]
    v, a = unicycle(heading, 3.0, 5.0, -2.0, 4.0)
    J, c = (np.vstack([np.array(row(q, v)[k]) for row in rows]) for k in (0, 1))
    np.testing.assert_allclose(J @ v, 0, atol=1e-12)
    np.testing.assert_allclose(J @ a + c.ravel(), 0, atol=1e-12)
    assert np.abs(c).max() > 0.01
    level = J[:, [0, 1, 5, 6, 7]]  # x, y, yaw and both wheels
    assert np.linalg.matrix_rank(level) == 3  # one lateral row repeats


def test_four_mecanum_wheels_move_to_all_sides():
    """`r φ' = v_x ∓ v_y ∓ (l + w) ω`: the axis of the lowest roller is across the diagonal."""
    system, rollers = mb.read_mjcf(car(*PLACES)), {"FL": -1, "FR": 1, "RL": 1, "RR": -1}
    v_x, v_y, turn = 0.3, -0.2, 0.7
    arm = PLACES["FL"][0] + PLACES["FL"][1]
    speeds, J = [], []
    for name, side in rollers.items():
        left = 1 if PLACES[name][1] > 0 else -1
        speeds.append((v_x + side * v_y - left * arm * turn) / RADIUS)
        wheel = mb.Wheel(radius=RADIUS, roller=side * np.pi / 4)
        J.append(np.array(rows_of(system, name, wheel)(system.tree.q0, np.zeros(system.nv))[0]))
    v = np.array([v_x, v_y, 0, 0, 0, turn, *speeds])
    np.testing.assert_allclose(np.vstack(J) @ v, 0, atol=1e-12)
    held = np.vstack(J)[:, [0, 1, 5, 6, 7, 8, 9]]
    assert np.linalg.matrix_rank(held) == 4  # 7 speeds less 3 that are free


def test_a_task_may_be_of_a_point_off_its_frame():
    system = mb.read_mjcf(car("FL"))
    task = FrameTask("base", kind="body", offset=(0.3, -0.1, 0.2))
    check_task(task, system)
    at = task.hold_reference(system, system.tree.q0)["position"]
    np.testing.assert_allclose(at, [0.3, -0.1, 0.25], atol=1e-12)


def test_wheels_that_cannot_be_are_refused_by_name():
    system = mb.read_mjcf(car("FL", "FR"))
    task = FrameTask("base", kind="body", position="xy", orientation="")
    wheel = mb.Contact("FL", kind="body", wheel=mb.Wheel(radius=RADIUS))
    for changes, message in (
        ({"wheel": mb.Wheel(radius=-1.0)}, "radius of the wheel = -1"),
        ({"wheel": mb.Wheel(axle=(0, 0, 0))}, "axle"),
        ({"wheel": mb.Wheel(roller=1.6)}, "roller 1.6 rad"),
        ({"slides": True}, "of a wheel: slides True"),
    ):
        bad = mb.Contact(**{"frame": "FL", "kind": "body", "wheel": wheel.wheel} | changes)
        with pytest.raises(ProblemError, match=message):
            InverseDynamicsQP(system, [task], [bad])
    with pytest.raises(ProblemError, match="wheels are for InverseDynamicsQP"):
        mb.with_contacts(system, [wheel])
