"""Linear models against MuJoCo's own transition matrices, in the limit of rigid constraints.

MuJoCo's step is `v⁺ = v + dt a`, `q⁺ = q ⊕ dt v⁺`; at rest that gives the transition of the linear
model without approximation, so what differs is the softness of MuJoCo's constraints. It is a smooth
function of `s = (1 - d)/d`, d the first entry of solimp: three values of s give the rigid limit.

MuJoCo moves one coordinate at a time, off the manifold. Where rows repeat others on the manifold
only, its stiff constraints then respond with forces that differences cannot follow: for those
mechanisms only the response to the control is compared.
"""

import mujoco
import numpy as np
import pytest
from linear_mechanisms import state_of, system_of

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.regulators import linearize

STEP = 1e-3  # s
STEPS_OF_DIFFERENCES = 1e-5
SOFT = (0.9975, 0.995, 0.99)
LEAST, MOST = 5e-4, 3e-2  # share of the matrix that solimp 0.99 changes
RIGID = 5e-6  # the same in the limit: rounding of MuJoCo's differences over STEP


def transition(name, linear, stiffness):
    """Return MuJoCo's (dfdx, dfdu) of one step in the coordinates of the linear model."""
    model = mujoco.MjModel.from_xml_path(str(models.path(name)))
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_EULER
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.tolerance, model.opt.iterations = 0, 100
    model.eq_solimp[:, :3] = [stiffness, stiffness, 1e-3]
    model.eq_solref[:] = [2 * STEP, 1]
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
    return (dfdx[below] - at_rest) / STEP, dfdu[below] / STEP


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
    ours = rates(linear, np.eye(linear.nx) + STEP * linear.dfdx, STEP * linear.dfdu)
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
