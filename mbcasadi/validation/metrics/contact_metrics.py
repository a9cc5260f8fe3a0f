"""Contacts of a closed loop: friction-cone margins, lost contacts, slip."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric

Array = NDArray[np.float64]

# Contacts that carry less than this share of the largest normal force are not judged: the
# direction of such a force is given by rounding and by MuJoCo's contact softness.
LOADED = 0.02
ACTIVE = 0.5  # a mask entry above it counts as active


def contact_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield the friction-cone margins of the plant and of the controller's own forces."""
    if not controller.contacts:
        return
    active = active_contacts(controller, recording)
    normal, tangential = recording.contact_normal, recording.contact_tangential
    loaded = active & (normal > LOADED * normal.max(initial=0.0))
    mu = np.array([contact.friction for contact in controller.contacts])
    if loaded.any():
        used = tangential / np.where(loaded, normal, 1.0) / mu
        meaning = "least margin 1 - |f_t| / (mu f_n) in MuJoCo"
        yield Metric("cone.plant", 1 - float(used[loaded].max()), "", meaning)
    lost = float((active & (normal <= 0)).mean())
    yield Metric("contact.lost", lost, "", "share of active contacts without force")
    slip = _slip(active, controller, recording)
    meaning = "largest slip of an active contact, rolling included"
    yield Metric("contact.slip", slip, "m", meaning)
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


def predicted_margin(controller: Controller, recording: Recording) -> Array | None:
    """Return (nt, nc) `1 - |f_t| / (mu f_n)` of the controller's own forces, NaN where unloaded."""
    force = recording.monitor.get("contact_force")
    if force is None:
        return None
    force = force.reshape(recording.ticks, len(controller.contacts), 3)
    mu = np.array([contact.friction for contact in controller.contacts])
    normal, tangential = force[:, :, 0], np.hypot(force[:, :, 1], force[:, :, 2])
    loaded = normal > LOADED * normal.max(initial=0.0)
    return np.where(loaded, 1 - tangential / np.where(loaded, mu * normal, 1.0), np.nan)


def _slip(active: NDArray[np.bool_], controller: Controller, recording: Recording) -> float:
    """Return the largest tangential distance of an active contact from its touchdown, m."""
    worst = 0.0
    for k, contact in enumerate(controller.contacts):
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
