"""Contacts of a closed loop: friction-cone margins, lost forces, slip."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.validation.closed_loop.recording import Recording
from mbcasadi.validation.metrics.metrics import Metric

Array = NDArray[np.float64]

# Contacts that carry less than this share of the largest normal force are not judged: there
# the direction of the force is that of the rounding and of MuJoCo's contact softness.
LOADED = 0.02
ON = 0.5  # a mask entry above it is on


def contact_metrics(controller: Controller, recording: Recording) -> Iterator[Metric]:
    """Yield the friction-cone margins of the plant and of the controller's own forces."""
    if not controller.contacts:
        return
    active = active_contacts(controller, recording)
    normal, slip = recording.contact_normal, recording.contact_tangential
    loaded = active & (normal > LOADED * normal.max(initial=0.0))
    mu = np.array([contact.friction for contact in controller.contacts])
    if loaded.any():
        used = (slip / np.where(loaded, normal, 1.0))[loaded] / np.broadcast_to(mu, loaded.shape)[
            loaded
        ]
        yield Metric(
            "cone.plant", 1 - float(used.max()), "", "least margin 1 - |f_t| / (mu f_n) in MuJoCo"
        )
    lost = active & (recording.contact_normal <= 0)
    yield Metric("contact.lost", float(lost.mean()), "", "share of active contacts without force")
    yield Metric(
        "contact.slip",
        _slip(active, recording),
        "m",
        "farthest way of an active contact, rolling included",
    )
    margin = predicted_margin(controller, recording)
    if margin is not None and (active & np.isfinite(margin)).any():
        least = float(margin[active & np.isfinite(margin)].min())
        yield Metric("cone.controller", least, "", "least margin of the forces it counts on")


def active_contacts(controller: Controller, recording: Recording) -> NDArray[np.bool_]:
    """Return (nt, nc): the controller counts on this contact."""
    count = len(controller.contacts)
    if recording.mask.shape[1] >= count:  # contacts come first, equality constraints after them
        return np.asarray(recording.mask[:, :count] > ON)
    return np.ones((recording.ticks, count), dtype=bool)


def predicted_margin(controller: Controller, recording: Recording) -> Array | None:
    """Return (nt, nc) `1 - |f_t| / (mu f_n)` of the controller's own forces, NaN where idle."""
    force = recording.monitor.get("contact_force")
    if force is None:
        return None
    force = force.reshape(recording.ticks, len(controller.contacts), 3)
    mu = np.array([contact.friction for contact in controller.contacts])
    normal, slip = force[:, :, 0], np.hypot(force[:, :, 1], force[:, :, 2])
    loaded = normal > LOADED * normal.max(initial=0.0)
    return np.where(loaded, 1 - slip / np.where(loaded, mu * normal, 1.0), np.nan)


def _slip(active: NDArray[np.bool_], recording: Recording) -> float:
    """Return the farthest distance of an active contact from where it became active, m."""
    worst = 0.0
    for k in range(active.shape[1]):
        place, start = recording.contact_place[:, k], None
        for i, on in enumerate(active[:, k]):
            if not on:
                start = None
            elif start is None:
                start = place[i]
            else:
                worst = max(worst, float(np.linalg.norm(place[i, :2] - start[:2])))
    return worst
