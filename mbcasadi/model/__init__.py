"""From a `RigidTree`: kinematics, inertia, bias, passive forces and actuation.

All functions take and return SX columns in MuJoCo's order and frames.
"""

from mbcasadi.model.activation import act_dot, next_act
from mbcasadi.model.actuation import (
    acting_inputs,
    actuation,
    actuator_bias,
    actuator_force,
    bias_of,
    gain_of,
)
from mbcasadi.model.center_of_mass import (
    center_of_mass,
    center_of_mass_arm,
    center_of_mass_fun,
    center_of_mass_velocity,
)
from mbcasadi.model.configuration import (
    difference,
    integrate,
    random_state,
    tangent_jacobian,
    tangent_rate,
    velocity_map,
)
from mbcasadi.model.coriolis import coriolis_matrix
from mbcasadi.model.end_of_step import actuator_slopes, slopes_at_end
from mbcasadi.model.energy import gravity_force, potential_energy
from mbcasadi.model.frames import (
    frame_bias,
    frame_jacobian,
    frame_pose,
    frame_poses,
    frame_velocity,
)
from mbcasadi.model.inertia import mass_matrix
from mbcasadi.model.interaction_wrench import generalised_force
from mbcasadi.model.inverse_dynamics_derivatives import inverse_dynamics_derivatives
from mbcasadi.model.momentum import momentum, momentum_fun
from mbcasadi.model.newton_euler import bias_force, inverse_dynamics
from mbcasadi.model.passive import passive_force
from mbcasadi.model.sensed_state import SensedState
from mbcasadi.model.sensors import MEMBERS_OF_KINDS, sensor_reading
from mbcasadi.model.spring_rests import next_rests, yielding
from mbcasadi.model.subtree import subtree_fun
from mbcasadi.model.tendon_wrenches import tendon_wrenches
from mbcasadi.model.transmission import actuator_length, tendon_length

__all__ = [
    "MEMBERS_OF_KINDS",
    "SensedState",
    "act_dot",
    "acting_inputs",
    "actuation",
    "actuator_bias",
    "actuator_force",
    "actuator_length",
    "actuator_slopes",
    "bias_force",
    "bias_of",
    "center_of_mass",
    "center_of_mass_arm",
    "center_of_mass_fun",
    "center_of_mass_velocity",
    "coriolis_matrix",
    "difference",
    "frame_bias",
    "frame_jacobian",
    "frame_pose",
    "frame_poses",
    "frame_velocity",
    "gain_of",
    "generalised_force",
    "gravity_force",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "mass_matrix",
    "momentum",
    "momentum_fun",
    "next_act",
    "next_rests",
    "passive_force",
    "potential_energy",
    "random_state",
    "sensor_reading",
    "slopes_at_end",
    "subtree_fun",
    "tangent_jacobian",
    "tangent_rate",
    "tendon_length",
    "tendon_wrenches",
    "velocity_map",
    "yielding",
]
