"""Constrained multibody dynamics and control with CasADi and MuJoCo.

>>> import mbcasadi as mb
>>> system = mb.read_mjcf("four_bar")  # exact, differentiable CasADi Functions
>>> fd = mb.forward_dynamics(system)  # (q, v, f) → (a, f_c, lam)
>>> ctl = mb.control.InverseDynamicsQP(system, tasks=[...])
>>> project = mb.export_c(ctl, "out/")  # C99 without allocation
>>> report = mb.validate(ctl, "four_bar", duration=5.0)  # the C against MuJoCo

Packages are imported when they are first used: `import mbcasadi` alone loads none of them.
"""

import logging
from importlib.metadata import version
from typing import TYPE_CHECKING

from mbcasadi.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbcasadi import anatomy as anatomy
    from mbcasadi import codegen as codegen
    from mbcasadi import control as control
    from mbcasadi import description as description
    from mbcasadi import dynamics as dynamics
    from mbcasadi import errors as errors
    from mbcasadi import estimation as estimation
    from mbcasadi import formulation as formulation
    from mbcasadi import identification as identification
    from mbcasadi import interop as interop
    from mbcasadi import linalg as linalg
    from mbcasadi import models as models
    from mbcasadi import motion as motion
    from mbcasadi import mpc as mpc
    from mbcasadi import plant as plant
    from mbcasadi import plots as plots
    from mbcasadi import simulation as simulation
    from mbcasadi import validation as validation
    from mbcasadi.anatomy.describe import describe as describe
    from mbcasadi.codegen import batch as batch
    from mbcasadi.codegen import export_c, export_two_rates, open_project
    from mbcasadi.contacts import contact_force_fun, with_contacts
    from mbcasadi.control.regulators.equilibrium import equilibrium as equilibrium
    from mbcasadi.control.regulators.linearization import linearize
    from mbcasadi.description import Baumgarte, Contact, Controller, Signal, TuningParameter, Wheel
    from mbcasadi.dynamics import constraint_force, forward_dynamics, inverse_dynamics
    from mbcasadi.dynamics import linear_parameters as linear_parameters
    from mbcasadi.dynamics.regressor import regressor as regressor
    from mbcasadi.motion.pose import Pose
    from mbcasadi.simulation import Event, EventRecord, SampledLaw, Switch, Trajectory, assemble
    from mbcasadi.simulation.fixed_step import simulate_fixed_step
    from mbcasadi.simulation.simulate import simulate
    from mbcasadi.system import System, contacts_of, from_equations, from_lagrangian, read_mjcf
    from mbcasadi.system.mask import row_mask
    from mbcasadi.system.redundancy import redundancy as redundancy
    from mbcasadi.validation.agreement.compare import compare
    from mbcasadi.validation.campaigns.campaign import campaign as campaign
    from mbcasadi.validation.trial_report import validate
else:
    __getattr__, __dir__ = lazy_names(__name__)

__version__ = version("mbcasadi")

logging.getLogger("mbcasadi").addHandler(logging.NullHandler())  # the program decides on its log

__all__ = [
    "Baumgarte",
    "Contact",
    "Controller",
    "Event",
    "EventRecord",
    "Pose",
    "SampledLaw",
    "Signal",
    "Switch",
    "System",
    "Trajectory",
    "TuningParameter",
    "Wheel",
    "assemble",
    "compare",
    "constraint_force",
    "contact_force_fun",
    "contacts_of",
    "describe",
    "export_c",
    "export_two_rates",
    "forward_dynamics",
    "from_equations",
    "from_lagrangian",
    "inverse_dynamics",
    "linear_parameters",
    "linearize",
    "open_project",
    "read_mjcf",
    "row_mask",
    "simulate",
    "simulate_fixed_step",
    "validate",
    "with_contacts",
]


NOT_STARRED = ("batch", "campaign", "equilibrium", "redundancy", "regressor")
"""Public names that `import *` leaves out, as it does packages: people have variables of them."""
