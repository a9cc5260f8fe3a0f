"""MuJoCo as the plant: NumPy in, NumPy out."""

from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.contacts import ContactForce
from mbcasadi.plant.draw import Frames, draw_frames
from mbcasadi.plant.measurement import Measurement
from mbcasadi.plant.options import make_rigid, perturb, soften
from mbcasadi.plant.plant import Plant

__all__ = [
    "ContactForce",
    "Frames",
    "Measurement",
    "Plant",
    "Source",
    "compile_model",
    "draw_frames",
    "make_rigid",
    "perturb",
    "soften",
]
