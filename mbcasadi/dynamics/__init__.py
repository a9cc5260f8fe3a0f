"""Joins a `System` and a formulation into named Functions, with implicit derivatives."""

from mbcasadi.dynamics.branch_motion import branch_motion
from mbcasadi.dynamics.formulations import FORMULATIONS, FormulationOptions
from mbcasadi.dynamics.forward import (
    constraint_force,
    forward_dynamics,
    forward_dynamics_derivatives,
)
from mbcasadi.dynamics.inverse import constrained_inverse_dynamics, inverse_dynamics
from mbcasadi.dynamics.inverse_derivatives import inverse_dynamics_derivatives
from mbcasadi.dynamics.null_space_functions import null_space_inverse_dynamics, null_space_terms
from mbcasadi.dynamics.predicted_sensors import (
    constraint_wrenches,
    predicted_readings,
    tendon_wrenches,
    wrench_force,
)
from mbcasadi.dynamics.projection_functions import force_channels, projection_terms
from mbcasadi.dynamics.quasi_velocity_functions import (
    quasi_velocity_curvature,
    quasi_velocity_motion,
    quasi_velocity_terms,
)
from mbcasadi.dynamics.regressor import linear_parameters, reference_regressor
from mbcasadi.dynamics.regressor import regressor as regressor
from mbcasadi.dynamics.spring_rests import spring_rests
from mbcasadi.dynamics.terms import Treatment
from mbcasadi.dynamics.udwadia_kalaba_functions import udwadia_kalaba_terms
from mbcasadi.dynamics.virtual_mass_functions import actuation_map, virtual_mass_terms

__all__ = [
    "FORMULATIONS",
    "FormulationOptions",
    "Treatment",
    "actuation_map",
    "branch_motion",
    "constrained_inverse_dynamics",
    "constraint_force",
    "constraint_wrenches",
    "force_channels",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "linear_parameters",
    "null_space_inverse_dynamics",
    "null_space_terms",
    "predicted_readings",
    "projection_terms",
    "quasi_velocity_curvature",
    "quasi_velocity_motion",
    "quasi_velocity_terms",
    "reference_regressor",
    "spring_rests",
    "tendon_wrenches",
    "udwadia_kalaba_terms",
    "virtual_mass_terms",
    "wrench_force",
]

NOT_STARRED = ("regressor",)
"""Public names that `import *` leaves out: they are words that people have variables of."""
