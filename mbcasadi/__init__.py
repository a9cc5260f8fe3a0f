"""Constrained multibody dynamics and control with CasADi and MuJoCo.

>>> import mbcasadi as mb
>>> system = mb.read_mjcf("four_bar.xml")  # exact, differentiable CasADi Functions
>>> fd = mb.forward_dynamics(system)  # (q, v, f) → (a, f_c, lam)
>>> ctl = mb.control.InverseDynamicsQP(system, tasks=[...])
>>> project = mb.export_c(ctl, "out/")  # C99 without allocation
>>> report = mb.validate(ctl, "four_bar.xml", duration=5.0)  # the C against MuJoCo
"""

from importlib.metadata import version

from mbcasadi import control, dynamics, formulation, interop, linalg, models, mpc
from mbcasadi.codegen import export_c, open_project
from mbcasadi.control.regulators import equilibrium, linearize
from mbcasadi.description import Baumgarte, Contact, Controller
from mbcasadi.dynamics import constraint_force, forward_dynamics, inverse_dynamics
from mbcasadi.simulation import (
    Event,
    EventRecord,
    Switch,
    Trajectory,
    assemble,
    simulate,
    simulate_fixed_step,
)
from mbcasadi.system import System, from_equations, from_lagrangian, read_mjcf, redundancy
from mbcasadi.validation import campaign, validate

__version__ = version("mbcasadi")

__all__ = [
    "Baumgarte",
    "Contact",
    "Controller",
    "Event",
    "EventRecord",
    "Switch",
    "System",
    "Trajectory",
    "assemble",
    "campaign",
    "constraint_force",
    "control",
    "dynamics",
    "equilibrium",
    "export_c",
    "formulation",
    "forward_dynamics",
    "from_equations",
    "from_lagrangian",
    "interop",
    "inverse_dynamics",
    "linalg",
    "linearize",
    "models",
    "mpc",
    "open_project",
    "read_mjcf",
    "redundancy",
    "simulate",
    "simulate_fixed_step",
    "validate",
]
