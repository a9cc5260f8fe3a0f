"""Readings of sensors, as MuJoCo's `sensordata`: those of joints, tendons, actuators, subtrees.

`frame_sensors` has those of frames. A reading is cut off last: `y` to ±cutoff, or to cutoff above.
"""

from dataclasses import replace

import casadi as ca

from mbcasadi.description import RigidTree, Sensor
from mbcasadi.description.sensors import SENSED_SOLVER
from mbcasadi.model.actuation import actuator_force, forces_of_actuators
from mbcasadi.model.energy import potential_energy
from mbcasadi.model.frame_sensors import FRAME_SENSORS, Reader
from mbcasadi.model.inertia import mass_matrix
from mbcasadi.model.motion import quat_of
from mbcasadi.model.sensed_state import SensedState
from mbcasadi.model.subtree import mean_velocity, subtree_motion
from mbcasadi.model.transmission import actuator_length, moment_row, tendon_length, tendon_row
from mbcasadi.spatial import entries, stack

MEMBERS_OF_KINDS = {
    "jointactuatorfrc": "actuator_force",
    "e_potential": "potential_energy",
    "e_kinetic": "kinetic_energy",
}
"""Kinds that rest on a member of the system, and share its refusals."""


def sensor_reading(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the reading (size, 1) of a sensor, cut off.

    Args:
        state: what it reads.
        sensor: one without a refusal.
    """
    reading = ca.densify(READERS[sensor.kind](state, sensor))
    if sensor.cut != "none":
        reading = ca.fmin(reading, sensor.cutoff)
    return ca.fmax(reading, -sensor.cutoff) if sensor.cut == "both" else reading


def joint_position(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the coordinate of a slide or hinge, m or rad."""
    return state.q[state.tree.joints[sensor.target].qpos]


def joint_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the rate of a slide or hinge, m/s or rad/s."""
    return state.v[state.tree.joints[sensor.target].dof]


def ball_quaternion(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the unit quaternion of a ball joint, w x y z."""
    return ca.vertcat(*quat_of(state.q, state.tree.joints[sensor.target].qpos))


def ball_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the angular velocity of a ball joint, rad/s, axes of its body."""
    return stack(entries(state.v, state.tree.joints[sensor.target].dof))


def joint_actuator_force(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return what all actuators give to a slide or hinge, clipped, N or N m."""
    total = actuator_force(state.tree, state.actuators, state.q, state.v, state.u, state.act)
    return total[state.tree.joints[sensor.target].dof]


def tendon_position(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the length of a tendon."""
    return tendon_length(state.tree, state.tree.tendons[sensor.target], state.q)


def tendon_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the rate of a tendon's length."""
    return tendon_row(state.tree, state.tree.tendons[sensor.target], state.q) @ state.v


def tendon_actuator_force(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the sum of the forces of the actuators that pull at a tendon, N."""
    total = ca.SX(0)
    for actuator, force in zip(state.actuators, _forces(state), strict=True):
        if actuator.transmission == "tendon" and actuator.target == sensor.target:
            total += force
    return total


def actuator_position(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the length of an actuator's transmission."""
    return actuator_length(state.tree, state.actuators[sensor.target], state.q)


def actuator_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the rate of an actuator's length."""
    return moment_row(state.tree, state.actuators[sensor.target], state.q) @ state.v


def actuator_scalar_force(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the force along an actuator's transmission, clipped."""
    return _forces(state)[sensor.target]


def subtree_center(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the centre of mass of a subtree, m, world axes."""
    return stack(subtree_motion(state.tree, sensor.target, state.q, state.v).center)


def subtree_velocity(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the velocity of a subtree's centre of mass, m/s, world axes."""
    return stack(mean_velocity(subtree_motion(state.tree, sensor.target, state.q, state.v)))


def subtree_angular_momentum(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return the angular momentum of a subtree about its centre of mass, kg m²/s, world axes."""
    return stack(subtree_motion(state.tree, sensor.target, state.q, state.v).angular)


def sensed_potential_energy(state: SensedState, sensor: Sensor) -> ca.SX:  # noqa: ARG001
    """Return gravity and springs, J, without the gravity compensation, as MuJoCo's `energy[0]`."""
    return potential_energy(_without_compensation(state.tree), state.q)


def sensed_kinetic_energy(state: SensedState, sensor: Sensor) -> ca.SX:  # noqa: ARG001
    """Return `½ vᵀ M v`, J, armature included."""
    return ca.bilin(mass_matrix(state.tree, state.q, state.actuators), state.v, state.v) / 2


def clock(state: SensedState, sensor: Sensor) -> ca.SX:  # noqa: ARG001
    """Return the time, s."""
    return state.t


def solver_number(state: SensedState, sensor: Sensor) -> ca.SX:
    """Return what the plant gives for a sensor of contacts or of a limit."""
    return state.solver[sensor.target]


READERS: dict[str, Reader] = {
    "jointpos": joint_position,
    "jointvel": joint_velocity,
    "ballquat": ball_quaternion,
    "ballangvel": ball_velocity,
    "jointactuatorfrc": joint_actuator_force,
    "tendonpos": tendon_position,
    "tendonvel": tendon_velocity,
    "tendonactuatorfrc": tendon_actuator_force,
    "actuatorpos": actuator_position,
    "actuatorvel": actuator_velocity,
    "actuatorfrc": actuator_scalar_force,
    "subtreecom": subtree_center,
    "subtreelinvel": subtree_velocity,
    "subtreeangmom": subtree_angular_momentum,
    "e_potential": sensed_potential_energy,
    "e_kinetic": sensed_kinetic_energy,
    "clock": clock,
    **dict.fromkeys(SENSED_SOLVER, solver_number),
    **FRAME_SENSORS,
}


def _forces(state: SensedState) -> list[ca.SX]:
    return forces_of_actuators(state.tree, state.actuators, state.q, state.v, state.u, state.act)


def _without_compensation(tree: RigidTree) -> RigidTree:
    return replace(tree, bodies=tuple(replace(body, gravcomp=0.0) for body in tree.bodies))
