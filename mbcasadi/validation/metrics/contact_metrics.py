"""Contacts of a closed loop: friction-cone margins, lost contacts, slip."""

from collections.abc import Iterator

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric
from mbcasadi.validation.metrics.unit_scales import unit_scale

Array = NDArray[np.float64]

# Contacts that carry less than this share of the largest normal force are not judged: the
# direction of such a force is given by MuJoCo's contact softness, as at a touchdown, or, for the
# controller's own, by rounding.
LOADED, LOADED_OWN = 0.1, 0.02
ACTIVE = 0.5  # a mask entry above it counts as active


def contact_metrics(
    controller: Controller, recording: Recording, model: mujoco.MjModel
) -> Iterator[Metric]:
    """Yield the friction-cone margins of the plant and of the controller's own forces, and slip.

    Args:
        controller, recording: of the run.
        model: of the plant, for its extent.
    """
    if not controller.contacts:
        return
    active = active_contacts(controller, recording)
    normal, within = recording.contact_normal, plant_margin(recording)
    loaded = active & (normal > LOADED * normal.max(initial=0.0)) & np.isfinite(within)
    if loaded.any():
        meaning = "least margin 1 - |f_t| / (mu f_n) in MuJoCo, with the friction of the plant"
        yield Metric("cone.plant", float(within[loaded].min()), "", meaning)
    lost = float((active & (normal <= 0)).mean())
    yield Metric("contact.lost", lost, "", "share of active contacts without force")
    slip = _slip(active, controller, recording)
    meaning = "largest slip of an active contact, rolling included"
    yield Metric("contact.slip", slip, "m", meaning)
    share = slip / unit_scale(model, "m")
    yield Metric("contact.slip_share", share, "", "largest slip, of the extent of the model")
    margin = predicted_margin(controller, recording)
    if margin is not None and (active & np.isfinite(margin)).any():
        least = float(margin[active & np.isfinite(margin)].min())
        yield Metric("cone.controller", least, "", "least margin of the controller's own forces")


def active_contacts(controller: Controller, recording: Recording) -> NDArray[np.bool_]:
    """Return (nt, nc): whether the controller uses this contact."""
    count = len(controller.contacts)
    if recording.mask.shape[1] >= count:  # contacts come first, equality constraints after them
        return np.asarray(recording.mask[:, :count] > ACTIVE)
    return np.ones((recording.ticks, count), dtype=bool)


def plant_margin(recording: Recording) -> Array:
    """Return (nt, nc) `1 - |f_t| / (mu f_n)` in the plant: 0 where it slides, NaN without force.

    Several points of one frame count together, each by its load.
    """
    capacity, acts = recording.contact_capacity, recording.contact_capacity > 0
    return np.where(acts, 1 - recording.contact_tangential / np.where(acts, capacity, 1.0), np.nan)


def predicted_margin(controller: Controller, recording: Recording) -> Array | None:
    """Return (nt, nc) `1 - |f_t| / (mu f_n)` of the controller's own forces, NaN where unloaded."""
    force = recording.monitor.get("contact_force")
    if force is None:
        return None
    force = force.reshape(recording.ticks, len(controller.contacts), 3)
    mu = np.array([contact.friction for contact in controller.contacts])
    normal, tangential = force[:, :, 0], np.hypot(force[:, :, 1], force[:, :, 2])
    loaded = normal > LOADED_OWN * normal.max(initial=0.0)
    return np.where(loaded, 1 - tangential / np.where(loaded, mu * normal, 1.0), np.nan)


def _slip(active: NDArray[np.bool_], controller: Controller, recording: Recording) -> float:
    """Return the largest tangential distance of an active contact from its touchdown, m.

    Contacts that are meant to slide do not count.
    """
    worst = 0.0
    for k, contact in enumerate(controller.contacts):
        if contact.slides:
            continue
        normal = np.asarray(contact.normal, dtype=float)
        normal = normal / np.linalg.norm(normal)
        position, touchdown = recording.contact_position[:, k], None
        for i, on in enumerate(active[:, k]):
            if not on:
                touchdown = None
            elif touchdown is None:
                touchdown = position[i]
            else:
                away = position[i] - touchdown
                worst = max(worst, float(np.linalg.norm(away - normal * (normal @ away))))
    return worst
