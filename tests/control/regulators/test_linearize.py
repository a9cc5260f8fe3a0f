"""Linear models: derivatives of our own motion, along motions, and MuJoCo's in the rigid limit.

MuJoCo's step is `v⁺ = v + dt a`, `q⁺ = q ⊕ dt v⁺`; at rest that gives the transition of the linear
model without approximation, so what differs is the softness of MuJoCo's constraints. It is a smooth
function of `s = (1 - d)/d`, d the first entry of solimp: three values of s give the rigid limit.

MuJoCo moves one coordinate at a time, off the manifold. Where rows repeat others on the manifold
only, its stiff constraints then respond with forces that differences cannot follow: for those
mechanisms only the response to the control is compared.
"""

from itertools import pairwise

import mujoco
import numpy as np
import pytest
from linear_mechanisms import chart, field, state_of, system_of
from numpy.testing import assert_allclose

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import models
from mbcasadi.control.regulators import discretize_along, linearize, linearize_along
from mbcasadi.dynamics import Treatment

MECHANISMS = [
    "four_bar",
    "cart_pole",
    "planar_3rrr",
    "standing_quadruped",
    "spinning",
    "disc",
    "driven_pendulum",
]
STEP = 1e-4
DIFFERENCES = 1e-7  # relative; the differences below are of sixth order


def derivative(function, size):
    """Return the Jacobian at zero by central differences of sixth order."""
    columns = []
    for j in range(size):
        unit = np.eye(size)[j] * STEP
        ends = {k: function(k * unit) - function(-k * unit) for k in (1, 2, 3)}
        columns.append((45 * ends[1] - 9 * ends[2] + ends[3]) / (60 * STEP))
    return np.array(columns).T.reshape(-1, size)


CASES = [(name, moving) for name in MECHANISMS for moving in (True, False)]
CASES.remove(("driven_pendulum", False))  # a driven mechanism is never at rest


@pytest.mark.parametrize(("name", "moving"), CASES)
@pytest.mark.every(3)
def test_the_linear_model_is_the_derivative_of_our_own_motion(name, moving):
    system = system_of(name)
    q, v, u, t = state_of(name, moving)
    linear = linearize(system, q, v, u, t=t)
    dynamics = mb.forward_dynamics(system, "lagrange", treatment=Treatment(rank_tol=1e-7))
    zero = np.zeros(linear.nx)
    scale = 1 + np.abs(linear.dfdx).max()
    dfdx = derivative(lambda x: field(system, dynamics, linear, x, u), linear.nx)
    assert np.abs(linear.dfdx - dfdx).max() < DIFFERENCES * scale
    dfdu = derivative(lambda du: field(system, dynamics, linear, zero, u + du), system.nu)
    assert np.abs(linear.dfdu - dfdu).max(initial=0) < DIFFERENCES * scale
    drift = field(system, dynamics, linear, zero, u)
    assert_allclose(linear.drift, drift, atol=1e-8 * (1 + np.abs(drift).max()))


DEVIATION = 1e-6
PERIOD, STEPS = 1e-3, 100
LINEAR = 1e-4  # second order of the deviation, and third of the period over a hundred steps


def motion(system, q, v):
    times = PERIOD * np.arange(STEPS + 1)
    return mb.simulate(system, q, v, times[-1], "lagrange", times=times, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["cart_pole", "four_bar", "planar_3rrr", "spinning", "disc"])
@pytest.mark.every(2)
def test_the_steps_carry_a_deviation_as_the_motion_does(name):
    system = system_of(name)
    q, v, _, _ = state_of(name)
    path = motion(system, q, v)
    along = linearize_along(system, path.q, path.v, np.zeros((STEPS + 1, system.nu)))
    x0 = DEVIATION * np.random.default_rng(0).standard_normal(along[0].nx)
    neighbour = motion(system, *chart(system, along[0], x0))
    deviation = along[-1].coordinates(neighbour.q[-1], neighbour.v[-1])
    x = x0
    for step in discretize_along(along, PERIOD):
        x = step.dfdx @ x
    change = np.linalg.norm(deviation - x0)
    assert change > 0.05 * np.linalg.norm(x0)  # there is something to predict
    assert np.linalg.norm(x - deviation) < LINEAR * np.linalg.norm(deviation)


def test_the_bases_turn_smoothly():
    system = system_of("planar_3rrr")
    q, v, _, _ = state_of("planar_3rrr")
    path = motion(system, q, v)
    along = linearize_along(system, path.q, path.v, np.zeros((STEPS + 1, system.nu)))
    for one, other in pairwise(along):
        assert np.abs(one.Z_v - other.Z_v).max() < 10 * PERIOD
        turn = one.to_eta @ other.Z_v
        assert_allclose(turn, turn.T, atol=1e-12)  # nearest: no turn within the space


def test_a_motion_through_a_singular_pose_is_refused():
    system = system_of("slider_crank")
    angles = np.pi / 2 + np.array([-0.01, 0.0, 0.01])
    q = np.column_stack([angles, 2 * np.cos(angles), angles])
    with pytest.raises(err.ProblemError, match="from 2 to 1 at sample 1"):
        linearize_along(system, q, 0 * q, np.zeros((3, system.nu)))


def test_samples_of_a_wrong_shape_are_refused():
    system = system_of("cart_pole")
    with pytest.raises(err.ShapeError, match=r"u has shape \(3, 2\), expected \(3, 1\)"):
        linearize_along(system, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 2)))


TIMESTEP = 1e-3  # s
STEPS_OF_DIFFERENCES = 1e-5
SOFT = (0.9975, 0.995, 0.99)
LEAST, MOST = 5e-4, 3e-2  # share of the matrix that solimp 0.99 changes
RIGID = 5e-6  # the same in the limit: rounding of MuJoCo's differences over TIMESTEP


def transition(name, linear, stiffness):
    """Return MuJoCo's (dfdx, dfdu) of one step in the coordinates of the linear model."""
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    model.opt.timestep, model.opt.integrator = TIMESTEP, mujoco.mjtIntegrator.mjINT_EULER
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.tolerance, model.opt.iterations = 0, 100
    model.eq_solimp[:, :3] = [stiffness, stiffness, 1e-3]
    model.eq_solref[:] = [2 * TIMESTEP, 1]
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = linear.q, linear.v, linear.u
    mujoco.mj_forward(model, data)
    nv = model.nv
    A, B = np.zeros((2 * nv, 2 * nv)), np.zeros((2 * nv, model.nu))
    mujoco.mjd_transitionFD(model, data, STEPS_OF_DIFFERENCES, True, A, B, None, None)
    x_of = np.hstack([linear.from_dq, linear.from_dv])
    return x_of @ A @ np.vstack([linear.to_dq, linear.to_dv]), x_of @ B


def rates(linear, dfdx, dfdu):
    """Return (dη/dt along x, along u) of a step `η⁺ = η + dt (…)`."""
    below = slice(linear.n_q, None)
    at_rest = np.hstack([np.zeros((linear.n_v, linear.n_q)), np.eye(linear.n_v)])
    return (dfdx[below] - at_rest) / TIMESTEP, dfdu[below] / TIMESTEP


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("four_bar", ("dfdx", "dfdu")),
        ("five_bar", ("dfdx", "dfdu")),
        ("slider_crank", ("dfdx", "dfdu")),
        ("planar_3rrr", ("dfdu",)),
        ("parallelogram", ("dfdu",)),
    ],
)
def test_the_linear_model_is_mujocos_in_the_rigid_limit(name, compared):
    system = system_of(name)
    point = mb.equilibrium(system, state_of(name, moving=False)[0])
    linear = linearize(system, point)
    ours = rates(linear, np.eye(linear.nx) + TIMESTEP * linear.dfdx, TIMESTEP * linear.dfdu)
    soft = [rates(linear, *transition(name, linear, d)) for d in SOFT]
    powers = np.vander([(1 - d) / d for d in SOFT], increasing=True)
    weights = np.linalg.inv(powers)[0]  # of the value at s = 0
    for k, what in enumerate(("dfdx", "dfdu")):
        mine, theirs = ours[k], np.array([each[k] for each in soft])
        size = np.abs(mine).max()
        softness = np.abs(theirs[-1] - mine).max()
        limit = np.tensordot(weights, theirs, axes=1)
        if what in compared:
            assert LEAST * size < softness < MOST * size
            assert np.abs(limit - mine).max() < RIGID * size
