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
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

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
    from mbcasadi.validation.validate import validate

__version__ = version("mbcasadi")

logging.getLogger("mbcasadi").addHandler(logging.NullHandler())  # the program decides on its log

_PACKAGES = (
    "anatomy",
    "codegen",
    "control",
    "description",
    "dynamics",
    "errors",
    "estimation",
    "formulation",
    "identification",
    "interop",
    "linalg",
    "models",
    "motion",
    "mpc",
    "plant",
    "plots",
    "simulation",
    "validation",
)
_HOMES = {
    "mbcasadi.anatomy": ("describe",),
    "mbcasadi.codegen": ("batch", "export_c", "export_two_rates", "open_project"),
    "mbcasadi.contacts": ("contact_force_fun", "with_contacts"),
    "mbcasadi.control.regulators": ("equilibrium", "linearize"),
    "mbcasadi.description": (
        "Baumgarte",
        "Contact",
        "Controller",
        "Signal",
        "TuningParameter",
        "Wheel",
    ),
    "mbcasadi.dynamics": (
        "constraint_force",
        "forward_dynamics",
        "inverse_dynamics",
        "linear_parameters",
        "regressor",
    ),
    "mbcasadi.motion": ("Pose",),
    "mbcasadi.simulation": (
        "Event",
        "EventRecord",
        "SampledLaw",
        "Switch",
        "Trajectory",
        "assemble",
        "simulate",
        "simulate_fixed_step",
    ),
    "mbcasadi.system": (
        "System",
        "contacts_of",
        "from_equations",
        "from_lagrangian",
        "read_mjcf",
        "redundancy",
        "row_mask",
    ),
    "mbcasadi.validation": ("campaign", "compare", "validate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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


NOT_STARRED = ("batch", "campaign", "equilibrium", "redundancy", "regressor", *_PACKAGES)
"""Public names that `import *` leaves out: they are words that people have variables of."""


def __getattr__(name: str) -> object:
    """Return a package, or a name of one, importing it now."""
    if name in _PACKAGES:
        return import_module(f"mbcasadi.{name}")
    if name in _HOME_OF:
        value: object = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'mbcasadi' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, *NOT_STARRED, "__version__"]
