"""Inputs of one call of a controller, from what the user gives."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.inverse_dynamics.options import CONTACT_SLOT, LOOP_SLOT, Array, Setup
from mbcasadi.control.tick.inputs import tuning_values
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.system.coordinates import pose_inputs, pose_of


def call_inputs(
    setup: Setup,
    q: ArrayLike,
    v: ArrayLike,
    ref: ArrayLike | None,
    mask: ArrayLike | None,
    act: ArrayLike | None,
    tuning: Mapping[str, float] | None,
    f_measured: ArrayLike | None = None,
    p: ArrayLike | None = None,
) -> dict[str, Array]:
    """Return the checked inputs by name, but for z, defaults filled in.

    Args:
        setup: the controller.
        q, v, ref, mask, act, tuning, f_measured, p: as in `InverseDynamicsQP.solve`.

    Raises:
        ProblemError: an input that the controller does not have.
        UnknownNameError: no such entry of `tuning`.
        ShapeError: a wrong shape.
    """
    system = setup.system
    further = {
        "act": (act, "the system has no activations"),
        "f_measured": (f_measured, "it has no force_feedback"),
        "tuning": (tuning, "nothing is tunable"),
        "p": (p, "the system has no parameters"),
    }
    has = {
        "act": system.na,
        "f_measured": setup.force_feedback is not None,
        "tuning": setup.tuning,
        "p": system.parameters,
    }
    for name, (value, reason) in further.items():
        if value is not None and not has[name]:
            raise ProblemError(f"'{setup.name}' has no input {name!r}: {reason}")
    q = pose_of(system, "q", q, finite=False)
    if ref is None:
        ref = setup.reference_at(q) if np.all(np.isfinite(q)) else np.zeros(setup.nref)
    mask = np.ones(len(setup.mask_names)) if mask is None else mask
    inputs = pose_inputs(system, q) | {
        "v": column("v", v, system.nv, finite=False),
        "ref": column("ref", ref, setup.nref, finite=False),
        "mask": column("mask", mask, len(setup.mask_names), finite=False),
    }
    if p is not None:
        inputs["p"] = column("p", p, len(system.parameters), finite=False)
    if system.na:
        act = np.zeros(system.na) if act is None else act
        inputs["act"] = column("act", act, system.na, finite=False)
    if setup.force_feedback is not None:
        if f_measured is None:  # the desired ones
            f_measured = asked_forces(setup, inputs["ref"])
        count = len(setup.weighed_forces)
        inputs["f_measured"] = column("f_measured", f_measured, count, finite=False)
    return inputs | ({"tuning": tuning_values(setup.tuning, tuning)} if setup.tuning else {})


def asked_forces(setup: Setup, ref: Array) -> Array:
    """Return the desired forces of a reference, in the order of `f_measured`."""
    count = 3 * len(setup.contacts)
    sizes = {CONTACT_SLOT: count, LOOP_SLOT: len(setup.weighed_forces) - count}
    return np.concatenate(
        [
            ref[setup.reference_slices[name]] if name in setup.reference_slices else np.zeros(size)
            for name, size in sizes.items()
        ]
    )
