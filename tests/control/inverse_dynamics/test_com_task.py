"""The centre of mass as a task: a quadruped sways over its feet."""

import casadi as ca
import numpy as np
import pytest
from mechanisms import feet, stand, system_of

import mbcasadi.errors as err
from mbcasadi.control import ComTask, InverseDynamicsQP
from mbcasadi.system import from_lagrangian

KP, KD = 50.0, 9.0  # 1/s², 1/s
SAME = 1e-4  # m/s² of 10: the share by which r_p pulls


def numbers(system, q, v):
    return (np.array(x) for x in system.center_of_mass(q, v))


@pytest.mark.parametrize("axes", ["xyz", "zx"])
def test_the_center_of_mass_has_the_acceleration_of_its_pd_law(axes):
    system = system_of("quadruped")
    task = ComTask(axes, kp=KP, kd=KD)
    law = InverseDynamicsQP(
        system,
        [task],
        feet(friction=2.0),
        torque_weight=1e-9,
        force_limits=np.tile([-np.inf, np.inf], (system.nu, 1)),
        ctrl_limits=np.tile([-np.inf, np.inf], (system.nu, 1)),
    )
    rng, rows = np.random.default_rng(0), ["xyz".index(axis) for axis in axes]
    for _ in range(5):
        q, v = stand(system, rng)
        p, J, c = numbers(system, q, v)
        ref = law.reference_at(q)
        shift = 0.02 * rng.standard_normal(len(axes))
        ref[law.reference_slices["com.position"]] += shift
        ref[law.reference_slices["com.acceleration"]] = 0.3
        solution = law.solve(q, v, ref)
        assert solution.solved
        reached = (J @ solution.a + c.ravel())[rows]
        desired = 0.3 - KD * (J @ v)[rows] + KP * shift
        np.testing.assert_allclose(reached, desired, atol=SAME * (1 + np.abs(desired).max()))
        np.testing.assert_allclose(
            ref[law.reference_slices["com.position"]] - shift, p.ravel()[rows]
        )


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(err.ProblemError, match="letters of 'xyz'"):
        ComTask("xx")
    with pytest.raises(err.ProblemError, match="letters of 'xyz'"):
        ComTask("")
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    mass = from_lagrangian(q, v, kinetic=v**2, B=[[1]], name="mass")
    with pytest.raises(err.ProblemError, match="has no bodies"):
        InverseDynamicsQP(mass, [ComTask()])
