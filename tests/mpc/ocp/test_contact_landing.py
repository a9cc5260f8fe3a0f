"""Contacts land on the ground and at rest where a mask closes them."""

import numpy as np
import pytest
from support.small_walker import LEGS, small_walker, standing_pose

import mbcasadi as mb
from mbcasadi import mpc
from mbcasadi.errors import ProblemError

N, H, LANDS, GROUND = 12, 0.02, 7, 0.03
EARLY = 3  # 70 mm down in 60 ms need 60 m/s²
START = np.array([0.0, 0.0, 0.1, 0.3, -0.2, 0.0])  # over the ground, moving along it
HEIGHT_PRICE, SPEED_PRICE = 1e3, 1e2


def flying_foot():
    """Return 1 kg that slides along x, y, z under motors of 40 N, with a contact."""
    motors = "".join(f'<motor joint="{axis}" ctrlrange="-40 40"/>' for axis in ("x", "y", "z"))
    slides = "".join(
        f'<joint name="{name}" type="slide" axis="{axis}"/>'
        for name, axis in (("x", "1 0 0"), ("y", "0 1 0"), ("z", "0 0 1"))
    )
    model = f"""<mujoco><worldbody><body>{slides}<geom size=".05" mass="1"/><site name="foot"/>
    </body></worldbody><actuator>{motors}</actuator></mujoco>"""
    foot = mb.Contact("foot", friction=0.8, sides=4)
    return mb.with_contacts(mb.read_mjcf(model), [foot], np.zeros(3)).with_mask(), foot


def problem(lands=LANDS, speed_price=SPEED_PRICE, parts=()):
    system, foot = flying_foot()
    landing = mpc.ContactLanding([foot], HEIGHT_PRICE, speed_price)
    cost = mpc.Cost(Q=[10.0, 10.0, 10.0, 1.0, 1.0, 1.0], R=1e-2)
    step = mpc.SemiImplicitStep(decay=0.0)
    ocp = mpc.optimal_control_problem(system, N, H, [cost, landing, *parts], step=step)
    on = np.arange(N + 1) >= lands
    p = ocp.parameters(
        mask=np.tile(on[:, None], (1, 3)), ground=[GROUND], setpoint_q=[0.1, 0.0, 0.1]
    )
    return ocp, p


def converged(ocp, p, ticks=6):
    """Return states and z of a real-time iteration that stays at one state."""
    rti = mpc.real_time_iteration(ocp, solver="stagewise", shift=False)
    z = rti.controller.z0
    for _ in range(ticks):
        sol = rti.function(q=START[:3], v=START[3:], ref=p.ravel(), z=z)
        z = np.array(sol["z_next"]).ravel()
    assert int(sol["status"]) == 0
    return rti, *rti.trajectory(z), z


def test_a_foot_is_on_the_ground_and_at_rest_where_it_lands_and_stays_there():
    ocp, p = problem()
    rti, X, _, z = converged(ocp, p)
    assert np.abs(X[: LANDS - 1, 2] - GROUND).min() > 1e-3  # it was not there before
    np.testing.assert_allclose(X[LANDS:, 2], GROUND, atol=1e-7)
    np.testing.assert_allclose(X[LANDS:, 3:], 0.0, atol=1e-7)
    assert rti.violations(z, p) == ()
    best = mpc.solve_ocp(ocp, START, p, solver="ipopt")
    np.testing.assert_allclose(X, best.x, atol=1e-6)


def test_a_landing_with_an_impact_takes_the_momentum_within_an_interval():
    cones = mpc.ContactCones([mb.Contact("foot", friction=0.8, sides=4)], linear_penalty=1.0)
    ocp, p = problem(speed_price=None, parts=[cones])
    _, X, U, _ = converged(ocp, p)
    landed = X[LANDS]
    assert landed[2] == pytest.approx(GROUND, abs=1e-7)
    assert landed[5] < -0.1  # 1 kg
    np.testing.assert_allclose(X[LANDS + 1 :, 3:], 0.0, atol=1e-7)
    # a body of 1 kg: its impulse is what stops it, beside gravity and its motors
    along, across, up = -landed[3:] - H * (U[LANDS] + [0, 0, -9.81])
    assert abs(along) + abs(across) <= 0.8 * up + 1e-6  # a pyramid of four sides
    best = mpc.solve_ocp(ocp, START, p, solver="ipopt")
    np.testing.assert_allclose(X, best.x, atol=1e-6)


def test_a_landing_that_cannot_be_reached_is_a_slack_that_is_named():
    ocp, p = problem(lands=EARLY)
    rti, X, _, z = converged(ocp, p)
    assert X[EARLY, 2] - GROUND > 1e-3
    said = " ".join(rti.violations(z, p))
    assert "landing height of foot" in said
    assert f"sample {EARLY} " in said


def test_which_contacts_land_follows_from_the_mask():
    ocp, p = problem()
    given = ocp.parameters(mask=np.ones((N + 1, 3)), landing=[0.0, 0.0])
    assert not given[:, -5:-3].any()
    lands = p[:, -5:-3]
    np.testing.assert_array_equal(np.argwhere(lands), [[LANDS, 0], [LANDS, 1]])
    at_once = ocp.parameters(mask=np.tile(np.arange(N + 1)[:, None] >= 1, (1, 3)))
    np.testing.assert_array_equal(np.argwhere(at_once[:, -5:-3]), [[1, 0]])  # its height is given


def test_rows_of_landing_have_the_derivatives_of_their_values():
    """By central differences along tangents, of a walker that is anywhere."""
    system = mb.read_mjcf(small_walker())
    feet = [mb.Contact(name, friction=0.6, sides=4) for name in LEGS]
    touching = mb.with_contacts(system, feet, standing_pose(system)).with_mask()
    parts = [mpc.Cost(Q=np.ones(36), R=1.0), mpc.ContactLanding(feet, 1.0, 1.0)]
    ocp = mpc.optimal_control_problem(touching, 2, H, parts, step=mpc.SemiImplicitStep())
    form, rng = ocp.motion, np.random.default_rng(0)
    q = np.array(system.integrate(standing_pose(system), 0.4 * rng.normal(size=18))).ravel()
    x, p = np.concatenate([q, rng.normal(size=18)]), ocp.parameters(landing=rng.normal(size=8))[0]
    p[-24:-20] = 0.1 * rng.normal(size=4)
    slopes, names = form.path_slopes(x, p).full(), ocp.names("path")
    rows = [i for i, name in enumerate(names) if name.startswith("landing")]
    assert len(rows) == 16

    def values(share):
        """Return the rows (16,), along each of the deviations."""
        moved = [form.moved(x, share * d) for d in np.eye(36)]
        return np.array([ocp.path(y, np.zeros(12), p).full().ravel()[rows] for y in moved]).T

    step = 1e-6
    np.testing.assert_allclose(slopes[rows], (values(step) - values(-step)) / (2 * step), atol=1e-7)
    others = [i for i in range(len(names)) if i not in rows]
    assert not slopes[others].any()


def test_the_c_lands_as_python_does(tmp_path):
    ocp, p = problem()
    rti, _, _, z = converged(ocp, p, ticks=2)
    tick = mb.export_c(rti, tmp_path).load()
    for each in (p, ocp.parameters(setpoint_q=[0.1, 0.0, 0.1])):  # with landings and without
        given = {"q": START[:3], "v": START[3:], "ref": each.ravel(), "z": z}
        ours, theirs = rti.function(**given), tick(**given)
        np.testing.assert_allclose(theirs["u"], ours["u"], atol=1e-6)
        assert int(ours["status"]) == int(theirs["status"]) == 0


def test_what_cannot_land_is_refused():
    system, foot = flying_foot()
    for mechanism in (system.with_mask(np.ones(3)), mb.read_mjcf(small_walker())):
        other = mpc.ContactLanding([mb.Contact("FL", friction=1.0)], 1.0, 1.0)
        with pytest.raises(ProblemError, match="no switched rows of contact 'FL'"):
            mpc.optimal_control_problem(mechanism, 2, H, [mpc.Cost(Q=1.0, R=1.0), other])
    unswitched = mb.with_contacts(mb.read_mjcf(small_walker()), [mb.Contact("FL", friction=1.0)])
    with pytest.raises(ProblemError, match="no switched rows"):
        mpc.optimal_control_problem(unswitched, 2, H, [mpc.Cost(Q=1.0, R=1.0), other])
    with pytest.raises(ProblemError, match="height_price"):
        mpc.ContactLanding([foot], 0.0, 1.0)
