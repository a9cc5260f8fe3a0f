"""A real-time iteration of a model whose servo is too stiff for the step: said in words."""

import numpy as np
import pytest
from support.problems import problem

import mbcasadi as mb
from mbcasadi.errors import ProblemError
from mbcasadi.mpc import StepOptions, initial_guess, real_time_iteration

SERVO = """
<mujoco model="stiff">
  <worldbody>
    <body>
      <joint name="turn" axis="0 1 0"/>
      <inertial pos="0 0 0.1" mass="0.1" diaginertia="1e-4 1e-4 1e-4"/>
    </body>
  </worldbody>
  <actuator>{motor}</actuator>
</mujoco>
"""
KV = '<position name="hold" joint="turn" kp="2000" kv="200"/>'  # poles: 10 and 2e5 1/s
MOTOR = '<motor name="hold" joint="turn"/>'
N = 10


def iteration(motor: str, **options: object) -> mb.mpc.RealTimeIteration:
    """Return the iteration about rest."""
    system = mb.read_mjcf(SERVO.format(motor=motor))
    ocp = problem(system, N, 0.02, Q=[10, 0.1], R=0.1, Q_end=[50, 0.5], **options)
    return real_time_iteration(ocp, initial_guess(ocp, np.zeros((N + 1, ocp.nx)), np.zeros((N, 1))))


@pytest.mark.parametrize("options", [{}, {"S": 0.1}, {"step": StepOptions(substeps=4)}])
def test_a_step_too_long_for_a_servo_is_refused_as_such(options: dict[str, object]) -> None:
    with pytest.raises(ProblemError, match=r"grows .*-fold in one interval of 0.02 s: .*substeps"):
        iteration(KV, **options)


def test_the_same_link_with_a_motor_is_served() -> None:
    assert np.all(np.isfinite(iteration(MOTOR).controller.z0))
