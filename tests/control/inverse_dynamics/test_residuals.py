"""What a controller believes of a solver, whatever that claims."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.control import InverseDynamicsQP, PostureTask
from mbcasadi.description import Contact
from mbcasadi.description.qp_stages import SolverFlag
from mbcasadi.description.status import Status
from mbcasadi.qp.solver import candidate_fun
from mbcasadi.system import read_mjcf

BOX_BESIDE_A_STRONG_MOTOR = """<mujoco><worldbody>
  <body name="box"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="z" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1"/>
    <site name="sole" pos="0 0 -.1"/></body>
  <body><joint name="rotor" axis="0 0 1" armature="1000"/><geom size=".1" mass="1"/></body>
  </worldbody><actuator>
  <motor name="x" joint="x" ctrlrange="-50 50"/><motor name="z" joint="z" ctrlrange="-50 50"/>
  <motor name="rotor" joint="rotor" ctrlrange="-1e7 1e7"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def controller():
    contacts = [Contact("sole", friction=0.5, sides=4)]
    return InverseDynamicsQP(
        read_mjcf(BOX_BESIDE_A_STRONG_MOTOR), [PostureTask(kp=100.0)], contacts
    )


def finished(controller, ref, missed):
    """Return status and residuals of an answer that misses its cone by that many newtons."""
    stages = controller.stages.qp
    given = {"q": np.zeros(3), "v": np.zeros(3), "ref": ref, "mask": [1.0], "z": controller.z0}
    built = stages.build(**given)
    x = candidate_fun(stages, "daqp")(**given)["x"]
    row = next(i for i, name in enumerate(controller.stages.row_names) if "friction" in name)
    A, value = built["A_qp"][row, :], built["A_qp"][row, :] @ x
    if float(built["uba"][row]) < 1e29:
        to = float(built["uba"][row]) + missed
    else:
        to = float(built["lba"][row]) - missed
    x = x + A.T * (to - value) / ca.sumsqr(A)
    given |= {
        "carry": built["carry"],
        "x": x,
        "lam_a": 0 * built["lba"],
        "active": 0 * built["lba"],
    }
    out = stages.finish(**given, flag=int(SolverFlag.OPTIMAL))
    return int(out["status"]), np.array(out["residual"]).ravel()


@pytest.mark.parametrize("turn", [0.0, 90.0])
def test_a_missed_cone_is_seen_beside_strong_motors(controller, turn):
    ref = controller.reference_at(np.array([0.0, 0.0, turn]))
    asked = np.abs(controller.solve(np.zeros(3), np.zeros(3), ref).p[2])
    assert asked >= 1e6 * (turn > 0)
    noise = 1e-12 * (1 + asked)  # N: what a solver may leave
    assert finished(controller, ref, noise)[1][2] <= 1e-6
    weight = 9.81
    status, residual = finished(controller, ref, 1e-3 * weight)
    assert residual[2] > 1e-6
    assert status == Status.FAILED
