"""MuJoCo as the plant: NumPy in, NumPy out."""

from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.browser import BrowserView, browse
from mbcasadi.plant.contacts import ContactForce
from mbcasadi.plant.draw import Frames, draw_frames
from mbcasadi.plant.free_object import FreeObject, with_object
from mbcasadi.plant.ground import Ground, with_ground
from mbcasadi.plant.measurement import Measurement
from mbcasadi.plant.options import make_rigid, perturb, soften
from mbcasadi.plant.plant import Plant
from mbcasadi.plant.solver_readings import solver_readings
from mbcasadi.plant.video import VideoOptions, save_video
from mbcasadi.plant.viewer import Observer, play
from mbcasadi.plant.wrenches import applied_wrenches, external_wrenches

__all__ = [
    "BrowserView",
    "ContactForce",
    "Frames",
    "FreeObject",
    "Ground",
    "Measurement",
    "Observer",
    "Plant",
    "Source",
    "VideoOptions",
    "applied_wrenches",
    "browse",
    "compile_model",
    "draw_frames",
    "external_wrenches",
    "make_rigid",
    "perturb",
    "play",
    "save_video",
    "soften",
    "solver_readings",
    "with_ground",
    "with_object",
]
