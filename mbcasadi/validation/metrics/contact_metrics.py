"""Contacts of a closed loop: friction-cone margins, lost contacts, slip, and planned forces.

At each tick the force of the plant is compared with the one that was planned with the control which
acts, `delay` ticks before. Both are (n, t1, t2) in the contact's own axes. A planned force stands
for a rigid contact, the measured one for MuJoCo's: what differs is softness, delay, the model's
errors and what the plan leaves out.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.contacts.friction_cone import contact_axes
from mbcasadi.description import Controller
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop import Recording
from mbcasadi.validation.metrics.metric import Metric, named, unit_scale
from mbcasadi.validation.metrics.tracking_metrics import root_mean_square

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
        yield from named({"cone.plant": within[loaded].min()})
    lost, slip = (active & (normal <= 0)).mean(), _slip(active, controller, recording)
    share = slip / unit_scale(model, "m")
    yield from named({"contact.lost": lost, "contact.slip": slip, "contact.slip_share": share})
    margin = predicted_margin(controller, recording)
    if margin is not None and (active & np.isfinite(margin)).any():
        yield from named({"cone.controller": margin[active & np.isfinite(margin)].min()})


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
    """Return (nt, nc) `1 - |f_t| / (mu f_n)` of the controller's own forces.

    NaN where it is unloaded, and where the forces are not known.
    """
    force = recording.monitor.get("contact_force")
    if force is None:
        return None
    force = force.reshape(recording.ticks, len(controller.contacts), 3)
    mu = np.array([contact.friction for contact in controller.contacts])
    normal, tangential = force[:, :, 0], np.hypot(force[:, :, 1], force[:, :, 2])
    loaded = normal > LOADED_OWN * np.nan_to_num(normal).max(initial=0.0)  # NaN is not loaded
    loaded &= mu > 0
    return np.where(loaded, 1 - tangential / np.where(loaded, mu * normal, 1.0), np.nan)


def _slip(active: NDArray[np.bool_], controller: Controller, recording: Recording) -> float:
    """Return the largest tangential distance of an active contact from its touchdown, m.

    Contacts that are meant to slide do not count, nor those of wheels, nor those that may roll on
    another geom.
    """
    worst = 0.0
    for k, contact in enumerate(controller.contacts):
        if contact.slides or contact.wheel or contact.geoms:
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


@dataclass(frozen=True)
class ContactForceRow:
    """One contact; forces over the weight of the model, NaN where it was never planned.

    Attributes:
        name: of the contact.
        planned: share of ticks with a plan that counts on it.
        normal_rms, normal_worst: difference of the normal forces at these ticks.
        tangential_rms, tangential_worst: length of the difference of the tangential forces.
        unplanned: largest force that the plant exerts where no force was planned, as by a foot that
            lands early.
    """

    name: str
    planned: float
    normal_rms: float
    normal_worst: float
    tangential_rms: float
    tangential_worst: float
    unplanned: float


@dataclass(frozen=True, repr=False)
class ContactForces:
    """Planned forces and MuJoCo's, contact by contact.

    Attributes:
        t: (n,) s; ticks with a plan that was solved.
        active: (n, nc) whether the plan counts on the contact.
        planned, measured: (n, nc, 3) normal and two tangential forces in the contact's axes, N.
        weight: of the model, N.
        rows: one for each contact.
    """

    t: Array
    active: NDArray[np.bool_]
    planned: Array
    measured: Array
    weight: float
    rows: tuple[ContactForceRow, ...]

    def __repr__(self) -> str:
        return f"ContactForces({len(self.rows)} contacts, {len(self.t)} ticks)"

    def to_dict(self) -> dict[str, object]:
        """Return the rows and the curves as plain data."""
        return {
            "weight": self.weight,
            "contacts": [asdict(row) for row in self.rows],
            "t": self.t.tolist(),
            "active": self.active.tolist(),
            "planned": self.planned.tolist(),
            "measured": self.measured.tolist(),
        }


def contact_forces(
    controller: Controller, recording: Recording, plant: Plant, delay: int = 0, settle: float = 0.0
) -> ContactForces | None:
    """Return planned and measured forces; None without contacts, plans or a solved tick.

    Args:
        controller: with a monitor of `contact_force`.
        recording: of the closed loop.
        plant: of the run.
        delay: ticks from a measurement to the moment at which its control acts.
        settle: s at the start that are left out.
    """
    planned = recording.monitor.get("contact_force")
    count = len(controller.contacts)
    if planned is None or not count:
        return None
    measured = measured_in_own_axes(controller, recording)
    plan = np.arange(max(0, len(measured) - delay))  # tick of the plan; it acts `delay` later
    now = plan + delay
    solved = ~np.isin(recording.status[plan], controller.safe_statuses)
    solved &= (recording.t[now] >= settle) & np.isfinite(planned[plan]).all(axis=1)
    plan, now = plan[solved], now[solved]
    if not plan.size:
        return None
    active = active_contacts(controller, recording)[plan]
    forces = planned[plan].reshape(-1, count, 3), measured[now]
    weight = unit_scale(plant.model, "N")
    rows = tuple(
        _row(contact.frame, active[:, k], forces[0][:, k] / weight, forces[1][:, k] / weight)
        for k, contact in enumerate(controller.contacts)
    )
    return ContactForces(recording.t[now], active, *forces, weight, rows)


def measured_in_own_axes(controller: Controller, recording: Recording) -> Array:
    """Return (n, nc, 3) MuJoCo's forces as n, t1, t2 of each contact; n may be one tick less.

    Axes on a moving body are those of `f_measured`. A controller that takes it was given the force
    of the step before, so that the force of a tick stands in the next row.
    """
    count = len(controller.contacts)
    if any(contact.other or contact.geoms for contact in controller.contacts):
        given = recording.f_measured[:, : 3 * count].reshape(-1, count, 3)
        return given[1:] if "f_measured" in controller.function.name_in() else given
    axes = [contact_axes(np.asarray(c.normal, dtype=float)) for c in controller.contacts]
    return np.stack([recording.contact_force[:, k] @ axes[k].T for k in range(count)], axis=1)


def contact_force_metrics(forces: ContactForces | None) -> Iterator[Metric]:
    """Yield the worst contact's differences; nothing without plans."""
    if forces is None:
        return
    for name, field in (("force_normal", "normal_rms"), ("force_tangential", "tangential_rms")):
        values = [getattr(row, field) for row in forces.rows]
        known = [value for value in values if np.isfinite(value)]
        if known:
            yield from named({f"contact.{name}": max(known)})


def _row(name: str, active: NDArray[np.bool_], planned: Array, measured: Array) -> ContactForceRow:
    """Return the row of a contact; forces (n, 3) over the weight."""
    difference = (measured - planned)[active]
    normal, tangential = difference[:, 0], np.linalg.norm(difference[:, 1:], axis=1)
    idle = np.linalg.norm(measured[~active], axis=1)
    return ContactForceRow(
        name=name,
        planned=float(active.mean()),
        normal_rms=root_mean_square(normal),
        normal_worst=float(np.abs(normal).max()) if normal.size else float("nan"),
        tangential_rms=root_mean_square(tangential),
        tangential_worst=float(tangential.max()) if tangential.size else float("nan"),
        unplanned=float(idle.max(initial=0.0)),
    )
