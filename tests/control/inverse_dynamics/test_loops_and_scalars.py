"""Stages of matrices, which become loops in C, answer as stages of scalars do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.mechanisms_of_control import closed, feet, stand, system_of

from mbcasadi.control import InverseDynamicsQP, JointLimits, LoopForceLimits, PostureTask, SoftLimit
from mbcasadi.control.inverse_dynamics.tick import make_stages
from mbcasadi.qp.solver import controller_fun

# Relative. Forces that cause no motion are determined by weights of 1e-5 and less.
SAME = 1e-5
CASES = {
    "quadruped": {"joint_limits": JointLimits(("FL_hip", "RR_thigh"), 1.0, 5.0)},
    "planar_3rrr": {"torque_reference": True, "stabilisation": 20.0},
    "five_bar": {
        "loop_force_limits": LoopForceLimits({"pin": (-2.0, 3.0)}),
        "soft": [SoftLimit("loop forces", linear=0.1)],
    },
    "planar_biped": {"force_weight": 1e-6, "force_reference": True, "contact_damping": 5.0},
}
CONTACTS = {"planar_biped": feet(("left_foot", "right_foot")), "quadruped": feet()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.every(2)
def test_both_forms_of_a_controller_answer_alike(name):
    system = system_of(name)
    law = InverseDynamicsQP(system, [PostureTask(kp=30.0)], CONTACTS.get(name, ()), **CASES[name])
    forms = [
        controller_fun("law", make_stages(law, loops=loops).qp, "daqp") for loops in (False, True)
    ]
    rng, solved = np.random.default_rng(4), 0
    for k in range(12):
        q, v = stand(system, rng, spread=0.05, speed=0.2)
        q = closed(system, q) if system.nc else q
        ref = law.reference_at(q) + 0.1 * rng.standard_normal(law.nref)
        mask = (rng.random(len(law.mask_names)) < 0.8).astype(float)
        if k == 11:
            v[0] = np.nan
        scalars, loops = (
            [np.array(out).ravel() for out in form(q, v, ref, mask, law.z0)] for form in forms
        )
        assert scalars[2] == loops[2]
        solved += int(scalars[2][0] == 0)
        assert_allclose(loops[0], scalars[0], atol=SAME * np.abs(scalars[0]).max())
        rows = len(law.row_names)
        assert_array_equal(loops[1][:rows], scalars[1][:rows])
    assert solved >= 8
