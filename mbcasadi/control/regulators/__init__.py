"""Linear systems of mechanisms with constraints: models, equilibria, regulators."""

from mbcasadi.control.margins.loop_margins import LoopMargin, Margins
from mbcasadi.control.regulators.controllability import (
    Controllability,
    Observability,
    require_stabilisable,
)
from mbcasadi.control.regulators.controllability import controllability as controllability
from mbcasadi.control.regulators.controllability import observability as observability
from mbcasadi.control.regulators.discrete import discretize
from mbcasadi.control.regulators.equilibrium import Equilibrium
from mbcasadi.control.regulators.equilibrium import equilibrium as equilibrium
from mbcasadi.control.regulators.feedback import feedback as feedback
from mbcasadi.control.regulators.from_state_space import feedback_from_ss
from mbcasadi.control.regulators.horizon import (
    finite_horizon_gains,
    finite_horizon_lqr,
    trajectory_gains,
    trajectory_lqr,
)
from mbcasadi.control.regulators.innovation_gate import Gate
from mbcasadi.control.regulators.linearization import Linearization, linearize
from mbcasadi.control.regulators.lqr import gain_in_full_coordinates, lqr, lqr_gain
from mbcasadi.control.regulators.lti_inverse_dynamics import lti_inverse_dynamics
from mbcasadi.control.regulators.margins import margins as margins
from mbcasadi.control.regulators.measurements import encoders as encoders
from mbcasadi.control.regulators.measurements import sensor_output
from mbcasadi.control.regulators.modes import Mode
from mbcasadi.control.regulators.multiplier_form import (
    DescriptorForm,
    descriptor_form,
    reduce_descriptor,
)
from mbcasadi.control.regulators.named_matrices import NamedMatrices
from mbcasadi.control.regulators.pole_placement import pole_placement, poles_gain
from mbcasadi.control.regulators.riccati import Filter, Regulator
from mbcasadi.control.regulators.time_varying import discretize_along, linearize_along

__all__ = [
    "Controllability",
    "DescriptorForm",
    "Equilibrium",
    "Filter",
    "Gate",
    "Linearization",
    "LoopMargin",
    "Margins",
    "Mode",
    "NamedMatrices",
    "Observability",
    "Regulator",
    "descriptor_form",
    "discretize",
    "discretize_along",
    "feedback_from_ss",
    "finite_horizon_gains",
    "finite_horizon_lqr",
    "gain_in_full_coordinates",
    "linearize",
    "linearize_along",
    "lqr",
    "lqr_gain",
    "lti_inverse_dynamics",
    "pole_placement",
    "poles_gain",
    "reduce_descriptor",
    "require_stabilisable",
    "sensor_output",
    "trajectory_gains",
    "trajectory_lqr",
]

NOT_STARRED = ("controllability", "encoders", "equilibrium", "feedback", "margins", "observability")
"""Public names that `import *` leaves out: they are words that people have variables of."""
