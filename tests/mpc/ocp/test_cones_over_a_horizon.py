"""A friction cone along an optimal control problem: a pendulum on a toe that must not slip."""

import casadi as ca
import numpy as np
import pytest
from support.problems import problem

import mbcasadi as mb
from mbcasadi.mpc import Bounded, initial_guess, solve_ocp, stage_symbols

HOPPER = """<mujoco><worldbody><body name="foot">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<joint name="tilt" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .4" size=".03" mass="1"/>
<body pos="0 0 .4"><joint name="hip" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 .5" size=".04" mass="4"/></body></body></worldbody>
<actuator><motor joint="hip" ctrlrange="-40 40"/></actuator>
<equality><connect name="toe" body1="foot" anchor="0 0 0"/></equality></mujoco>"""
START = np.array([0, 0, 0, 0, 0, 0, 0, 1.0])  # the hip turns
FRICTION, ROUNDED = 0.1, 1e-3  # N, by which the cone's apex is rounded
STEPS, PERIOD = 20, 0.02


def solution(system, path, symbols):
    weights = {"Q": np.repeat([50.0, 1.0], 4), "R": 0.01}
    ocp = problem(system, STEPS, PERIOD, **weights, symbols=symbols, path=path)
    guess = initial_guess(ocp, np.zeros((STEPS + 1, 8)), np.zeros((STEPS, 1)))
    return solve_ocp(ocp, START, ocp.parameters(), guess, solver="ipopt")


def toe_force(system, q, v, u):
    """Return the force on the toe by the saddle-point system, without the package's dynamics."""
    of_q = system.mass_matrix, system.constraint_jacobian, system.actuation
    M, A, B = (np.array(function(q)) for function in of_q)
    h, c = (np.array(f(q, v)) for f in (system.bias_force, system.constraint_bias))
    KKT = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    right = np.concatenate([B @ u - h.ravel(), -c.ravel()])
    return np.linalg.lstsq(KKT, right, rcond=1e-10)[0][len(M) :]


@pytest.mark.long
def test_the_force_stays_in_its_cone_along_the_horizon():
    system = mb.read_mjcf(HOPPER)
    s = stage_symbols(system)
    force = mb.forward_dynamics(system)(q=s.q, v=s.v, f=system.actuation(s.q) @ s.u)["lam"]
    across = ca.sqrt(force[0] ** 2 + force[1] ** 2 + ROUNDED**2)
    cone = Bounded(FRICTION * force[2] - across, lower=0, name="cone of the toe")
    ratios = []
    for path in ([], [cone]):
        found = solution(system, path, s)
        assert found.status == 0
        forces = [
            toe_force(system, x[:4], x[4:], u) for x, u in zip(found.x[:-1], found.u, strict=True)
        ]
        ratios.append(max(np.hypot(f[0], f[1]) / f[2] for f in forces))
    assert ratios[0] > 1.2 * FRICTION  # there was something to prevent
    assert ratios[1] <= FRICTION * (1 + 1e-6)
    assert ratios[1] > 0.99 * FRICTION
