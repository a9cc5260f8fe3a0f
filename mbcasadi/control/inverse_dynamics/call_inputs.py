"""Inputs of one call of a controller, from what the user gives."""

from collections.abc import Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.control.inverse_dynamics.options import CONTACT_SLOT, LOOP_SLOT, Array, Setup
from mbcasadi.control.tick.inputs import tuning_values
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column, require_name
from mbcasadi.system.coordinates import pose_inputs, pose_of


class TickInputs(TypedDict, total=False):
    """Inputs of a tick beside q, v and ref.

    Attributes:
        mask: one for each contact and equality constraint that is on; default: all on.
        z: (nz,) state; default: `z0`.
        act: (na,) activations, where the system has them; default: zero.
        tuning: entries of the input `tuning` by name; the others have their defaults.
        f_measured: measured forces, N or N m, where there is a `force_feedback`: n, t1, t2 of each
            contact, then the loop forces with a weight; default: those of the reference.
        p: (np,) physical parameters, `system.parameter_values({...})`; default: the model's.
    """

    mask: ArrayLike | None
    z: ArrayLike | None
    act: ArrayLike | None
    tuning: Mapping[str, float] | None
    f_measured: ArrayLike | None
    p: ArrayLike | None


def call_inputs(
    setup: Setup,
    z0: Array,
    q: ArrayLike,
    v: ArrayLike,
    ref: ArrayLike | None,
    given: TickInputs,
) -> dict[str, Array]:
    """Return the checked inputs by name, defaults filled in.

    Args:
        setup: the controller.
        z0: its initial state.
        q, v, ref: as in `InverseDynamicsQP.solve`.
        given: the others.

    Raises:
        ProblemError: an input that the controller does not have.
        UnknownNameError: no such input, or entry of `tuning`.
        ShapeError: a wrong shape.
    """
    system = setup.system
    for name in given:
        require_name("input of a tick", name, list(TickInputs.__annotations__))
    mask, z, act, p = given.get("mask"), given.get("z"), given.get("act"), given.get("p")
    tuning, f_measured = given.get("tuning"), given.get("f_measured")
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
        "z": z0 if z is None else column("z", z, z0.size, finite=False),
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
