"""Motion on the constraint manifold: integration, projection, assembly, changes of topology."""

from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.events import Event, EventRecord, Switch
from mbcasadi.simulation.fixed_step import simulate_fixed_step
from mbcasadi.simulation.options import EquationOptions, InitialConditions, IntegrationOptions
from mbcasadi.simulation.sampled_law import ControlLoop, SampledLaw
from mbcasadi.simulation.simulate import simulate
from mbcasadi.simulation.step_function import fixed_step_fun
from mbcasadi.simulation.trajectory import Trajectory

__all__ = [
    "ControlLoop",
    "EquationOptions",
    "Event",
    "EventRecord",
    "InitialConditions",
    "IntegrationOptions",
    "SampledLaw",
    "Switch",
    "Trajectory",
    "assemble",
    "fixed_step_fun",
    "simulate",
    "simulate_fixed_step",
]
