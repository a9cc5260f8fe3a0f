"""Our own motion on the constraint manifold: integration, projection, assembly, switching."""

from mbcasadi.simulation.assembly import assemble
from mbcasadi.simulation.events import Event, Happening, Switch
from mbcasadi.simulation.law import SampledLaw
from mbcasadi.simulation.march import march
from mbcasadi.simulation.simulate import simulate
from mbcasadi.simulation.trajectory import Trajectory

__all__ = [
    "Event",
    "Happening",
    "SampledLaw",
    "Switch",
    "Trajectory",
    "assemble",
    "march",
    "simulate",
]
