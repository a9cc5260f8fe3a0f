"""A schedule of contacts closes what is closed, and nothing falls through its floor."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from support.corpora import packaged_model
from support.problems import problem as problem_of
from support.problems import trajectory

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import mpc
from mbcasadi.description.status import Status

HORIZON, PERIOD, GRAVITY, HEIGHT = 20, 0.02, 9.81, 0.1
CLOSING, DEPTH = 5e-3, 0.02  # m
FALL = np.sqrt(2 * HEIGHT / GRAVITY)  # s, 0.143: between the samples 7 and 8


def point_mass():
    """Return 1 kg above a floor, which its row is, pushed by at most 1 N."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return mb.from_lagrangian(
        q, v, kinetic=v**2 / 2, potential=GRAVITY * q, B=[[1]], phi=q,
        ctrl_range=[[-1.0, 1.0]], name="mass",
    ).with_mask([0])  # fmt: skip


def problem(**options):
    options = {"closing": CLOSING, "depth": DEPTH} | options
    return problem_of(point_mass(), HORIZON, PERIOD, R=1.0, **options)


def landing_at(sample):
    return np.arange(HORIZON + 1)[:, None] >= sample


def test_a_row_is_pulled_shut_by_the_step_alone():
    step = mpc.discrete_dynamics(point_mass(), PERIOD)
    assert float(step([HEIGHT, 0], 0, 1)[0]) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("sample", "solved"), [(0, False), (4, False), (7, True), (12, False)])
def test_a_plan_lands_when_a_falling_mass_can_and_not_before_or_after(sample, solved):
    """By its force the mass falls in 0.136 s to 0.151 s: sample 7 is 0.14 s."""
    ocp = problem(not_below={"phi0": 1})
    solution = mpc.solve_ocp(
        ocp, [HEIGHT, 0], ocp.parameters(mask=landing_at(sample)), solver="ipopt"
    )
    assert solution.solved == solved, solution.in_words
    if solved:
        assert abs(solution.x[sample, 0]) <= 1.01 * CLOSING
        assert solution.x[:, 0].min() >= -1.01 * CLOSING
        speeds = np.diff(solution.x[: sample + 1, 0]) / PERIOD  # no step is longer than the fall's
        assert np.abs(speeds).max() < 1.2 * np.sqrt(2 * GRAVITY * HEIGHT)


def ball(unit):
    """Return a ball above a floor, one metre of which has `unit` units, and its radius."""
    radius = 0.1 * unit
    free = mb.read_mjcf(
        f"""<mujoco><option gravity="0 0 {-GRAVITY * unit}"/><worldbody><body>
        <joint name="z" type="slide" axis="0 0 1"/><geom size="{radius}" mass="1"/></body>
        </worldbody><actuator><motor joint="z"/></actuator></mujoco>"""
    )
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return free.with_rows(q, v, phi=q - radius).with_mask(), radius


def test_by_default_both_distances_are_shares_of_the_mechanism():
    bounds = {}
    for unit in (1.0, 1e3):
        system, radius = ball(unit)
        ocp = mpc.optimal_control_problem(
            system, HORIZON, PERIOD, [mpc.Cost(R=1), mpc.ContactSchedule(not_below={"phi0": 1})]
        )
        bounds[unit] = np.vstack([ocp.path_bounds, ocp.first_path_bounds]) / radius
    np.testing.assert_allclose(bounds[1e3], bounds[1.0], rtol=1e-6)
    closing, depth = bounds[1.0][0, 1], -bounds[1.0][-1, 0]
    assert depth == pytest.approx(4 * closing)
    assert 1e-3 < closing < 0.1


def test_without_the_side_of_the_row_a_mass_may_pass_its_floor_until_it_closes():
    below = np.array([-HEIGHT, 3.0])  # thrown up from below: the row does not know its side
    ocp, on = problem(), landing_at(HORIZON)
    assert mpc.solve_ocp(ocp, below, ocp.parameters(mask=on), solver="ipopt").solved
    sided = problem(not_below={"phi0": 1})
    assert not mpc.solve_ocp(sided, below, sided.parameters(mask=on), solver="ipopt").solved
    other = problem(not_below={"phi0": -1})
    low = other.parameters(mask=on)
    assert mpc.solve_ocp(other, [-HEIGHT, 0.0], low, solver="ipopt").solved


@pytest.mark.parametrize(("sample", "status"), [
    (0, Status.INFEASIBLE), (4, Status.INFEASIBLE), (7, Status.SOLVED), (12, Status.INFEASIBLE),
])  # fmt: skip
def test_a_real_time_iteration_says_so_too(sample, status):
    ocp = problem(not_below={"phi0": 1})
    rti, z = mpc.real_time_iteration(ocp, shift=False), None
    p = ocp.parameters(mask=landing_at(sample)).ravel()
    z = rti.controller.z0
    for _ in range(5):
        u, z, actual, *_ = rti.function(HEIGHT, 0.0, p, z)
    assert int(actual) == status
    assert abs(float(u)) <= 1


def test_an_almost_closed_row_closes():
    ocp = problem()
    p = ocp.parameters(mask=landing_at(0))
    assert mpc.solve_ocp(ocp, [0.9 * CLOSING, 0], p, solver="ipopt").solved
    wide = problem(closing=0.2)
    assert mpc.solve_ocp(wide, [HEIGHT, 0], p, solver="ipopt").solved


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(
    ("depth", "solved"),
    [(CLOSING, True), (0.9 * DEPTH, True), (1.1 * DEPTH, False), (-2 * CLOSING, False)],
)
@pytest.mark.every(3)
def test_a_measured_contact_that_has_given_way_is_closed(side, depth, solved):
    """Below the floor is a landing of the plant, up to `DEPTH`; above it is no contact."""
    ocp = problem(not_below={"phi0": side})
    p = ocp.parameters(mask=landing_at(0))
    solution = mpc.solve_ocp(ocp, [-side * depth, 0.0], p, solver="ipopt")
    assert solution.solved == solved
    if solved:
        assert solution.violations == ()
        assert np.abs(solution.x[1:, 0]).max() < 1e-9  # m; a plan is on the floor
    rti = mpc.real_time_iteration(ocp, shift=False)
    _, _, status, *_ = rti.function(-side * depth, 0.0, p.ravel(), rti.controller.z0)
    assert int(status) == (Status.SOLVED if solved else Status.INFEASIBLE)
    limits = rti.controller.limits
    assert limits is not None
    value = limits.value(q=-side * depth, v=0, ref=p.ravel())["value"].full().ravel()
    assert np.all((limits.lower <= value) & (value <= limits.upper)) == solved


def test_no_plan_goes_as_deep_as_a_measurement_may():
    ocp = problem(not_below={"phi0": 1})
    off = ocp.parameters(mask=landing_at(HORIZON + 1))
    falling, jumping = np.array([-0.9 * DEPTH, 0.0]), np.array([-0.9 * DEPTH, 4.0])
    assert not mpc.solve_ocp(ocp, falling, off, solver="ipopt").solved
    assert mpc.solve_ocp(ocp, jumping, off, solver="ipopt").solved


@pytest.mark.parametrize(("depth", "solved"), [(0.9 * CLOSING, True), (0.9 * DEPTH, False)])
def test_a_trajectory_is_planned_from_its_first_sample_on(depth, solved):
    begins = {"q0": [-depth], "v0": [0.0], "u_rates": [[-50.0, 50.0]]}
    free = trajectory(
        point_mass(), HORIZON, [0.4, 0.4], R=1.0, not_below={"phi0": 1}, closing=CLOSING, **begins
    )
    on = free.ocp.parameters(mask=landing_at(0))
    guess = mpc.trajectory_guess(free, np.zeros((HORIZON + 1, 1)))
    assert mpc.solve_trajectory(free, guess, on).solved == solved


def test_a_trajectory_with_a_free_start_begins_and_ends_in_the_air_where_the_mask_is_off():
    """A throw of a parabola: no force is needed."""
    mass, T = point_mass(), 0.4
    own = mpc.stage_symbols(mass)
    top = GRAVITY * (T / 2) ** 2 / 2
    start = {"start": [mpc.Bounded(own.q, HEIGHT, HEIGHT)], "not_below": {"phi0": 1}}
    end = mpc.pin_independent_coordinates(mass, own, [HEIGHT], [-GRAVITY * T / 2], [0.0])
    problem = trajectory(mass, HORIZON, [T, T], residual=own.u, end=end, symbols=own, **start)
    off = problem.ocp.parameters(mask=landing_at(HORIZON + 1))
    guess = mpc.trajectory_guess(problem, np.full((HORIZON + 1, 1), HEIGHT))
    solution = mpc.solve_trajectory(problem, guess, off)
    assert solution.solved, solution.in_words
    assert solution.cost < 1e-12
    assert solution.q[HORIZON // 2, 0] == pytest.approx(HEIGHT + top, abs=1e-9)
    assert solution.v[0, 0] == pytest.approx(GRAVITY * T / 2, abs=1e-9)


@pytest.mark.parametrize(("options", "words"), [
    ({"closing": 0.0}, "closing = 0.0; expected a finite, positive"),
    ({"closing": np.nan}, "closing = nan"),
    ({"depth": -0.01}, "depth = -0.01; expected a finite, positive"),
    ({"not_below": {"floor": 1}}, r"no row 'floor' of positions.*\['phi0'\]"),
    ({"not_below": {"phi0": 0}}, "phi0 has the sign 0; expected 1 or -1"),
])  # fmt: skip
def test_a_schedule_without_sense_is_refused(options, words):
    with pytest.raises(err.ProblemError, match=words):
        problem(**options)


def test_a_side_needs_a_row_that_is_switched():
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    free = mb.from_lagrangian(q, v, kinetic=v**2 / 2, B=[[1]], name="mass")
    with pytest.raises(err.ProblemError, match=r"no row of 'mass' is switched.*with_mask"):
        mpc.optimal_control_problem(
            free, 3, 0.1, [mpc.Cost(R=1.0), mpc.ContactSchedule(not_below={"phi0": 1})]
        )


# The planar hopper of dm_control: toe and heel on the floor, which the toe does not slide on.
SOLE = 0.04  # m, radius of the foot
FLIGHT = slice(7, 12)


@pytest.fixture(scope="module")
def hopper():
    """Return MuJoCo's model, the system with its contacts, and a crouched pose on the floor."""
    model = mujoco.MjModel.from_xml_path(str(packaged_model("dm_control/hopper")))
    free = mb.read_mjcf(model)
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    toe, heel = (free.frame(name).pose(q)[0] for name in ("touch_toe", "touch_heel"))
    heights = ca.vertcat(toe[2], heel[2]) - SOLE
    system = free.with_rows(q, v, phi=heights).with_rows(q, v, psi=ca.jtimes(toe[0], q, v))
    pose = np.array([0, 0, 0, 0, -0.8, 1.6, -0.8])
    pose[1] = -float(ca.Function("toe", [q], [heights[0]])(pose))
    return model, system.with_mask(), pose


def sole_heights(model, states):
    """Return the heights of toe and heel above the floor, by MuJoCo."""
    data, heights = mujoco.MjData(model), []
    for state in states:
        data.qpos[:] = state[:7]
        mujoco.mj_kinematics(model, data)
        sites = (data.site(name).xpos[2] for name in ("touch_toe", "touch_heel"))
        heights.append([height - SOLE for height in sites])
    return np.array(heights)


@pytest.mark.long
def test_a_hopper_that_is_asked_to_hop_flies(hopper):
    model, system, pose = hopper
    N = 16
    mask = np.ones((N + 1, 3))
    mask[FLIGHT] = 0
    low = np.full(4, 0.1), np.full(7, 0.01)
    given = {"Q": np.r_[1, 5, 5, *low], "R": 0.1, "Q_end": np.r_[1, 50, 50, *(10 * x for x in low)]}
    floor = {"closing": CLOSING, "not_below": {"phi0": 1, "phi1": 1}}
    ocp = problem_of(system, N, 0.03, **given, **floor)
    p = ocp.parameters(mask=mask, setpoint_q=pose)
    solution = mpc.solve_ocp(ocp, np.r_[pose, np.zeros(7)], p, solver="ipopt")
    assert solution.solved, solution.in_words
    heights = sole_heights(model, solution.x)
    assert heights.min() >= -1.01 * CLOSING
    assert heights[FLIGHT].max() > 2 * CLOSING  # it flies
    assert np.abs(heights[FLIGHT.stop]).max() <= 1.01 * CLOSING  # and lands before it is closed
    assert solution.x[FLIGHT.start, 8] > 0.2  # m/s upwards where it leaves the floor
