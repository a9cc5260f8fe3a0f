"""What spatial tendons do to the bodies: MuJoCo's `cfrc_ext` without forces of the solver."""

import copy

import mujoco
import numpy as np

from mbcasadi.description import SpatialTendon
from mbcasadi.dynamics import tendon_wrenches
from mbcasadi.errors import UnsupportedFeatureError
from mbcasadi.mjcf.compat import counts_spatial_tendons
from mbcasadi.plant import external_wrenches
from mbcasadi.system import System
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.references import Reference, Value
from mbcasadi.validation.agreement.samples import Sample


def comparisons(system: System) -> list[tuple[Reference, Value]]:
    """Return MuJoCo's side of `tendon_wrenches` and ours, where a model has spatial tendons.

    There is none where the forces of the model are refused, and before MuJoCo 3.14.
    """
    tendons = () if system.tree is None else system.tree.tendons
    if not counts_spatial_tendons() or not any(isinstance(t, SpatialTendon) for t in tendons):
        return []
    try:
        ours = tendon_wrenches(system)
    except UnsupportedFeatureError:
        return []  # the refused member has an entry of its own

    def value(s: Sample) -> Array:
        inputs = {"q": s.q, "v": s.v, "a": s.data.qacc, "u": s.u, "act": s.act}
        return np.asarray(ours(*(inputs[name] for name in ours.name_in())).full())

    return [(Reference("tendon_wrenches", "N, N m", _mujoco, _size), value)]


def _mujoco(s: Sample) -> Array:
    """Return MuJoCo's wrenches at its own acceleration; a sample has no forces on bodies."""
    data: mujoco.MjData = copy.copy(s.data)
    data.efc_force[:] = 0.0
    return external_wrenches(s.model, data)


def _size(s: Sample) -> Array:
    """Return the natural size of forces above that of moments, or the largest where it is more."""
    length, wrenches = s.sizes.length, _mujoco(s)
    force = (float(s.model.body_subtreemass[0]) or 1.0) * length * s.sizes.rate**2
    force = max(
        force, float(np.abs(wrenches[:3]).max()), float(np.abs(wrenches[3:]).max()) / length
    )
    return np.repeat([force, force * length], 3)[:, None] * np.ones_like(wrenches)
