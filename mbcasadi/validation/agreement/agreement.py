"""A `System` against MuJoCo, quantity by quantity, at random states.

States are drawn in the mechanism's own sizes, and each quantity is divided by its own natural size
(`weights`): nothing here depends on the units of the model. Forces and inertias are compared in the
metric of the inertia itself: row i is divided by `sqrt(M_ii)`, so that a small rotational inertia
counts as much as a large mass. The error of a quantity at one state is the largest difference over
the largest value that MuJoCo gives, or over a small share of the natural size where that is more.
"""

from typing import NamedTuple

import casadi as ca
import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.mjcf import capture_warnings
from mbcasadi.shapes import require_whole
from mbcasadi.system import FrameFunctions, System
from mbcasadi.validation.agreement import frame_values, sensor_values, tendon_values
from mbcasadi.validation.agreement.manifold import Array, smooth_copy
from mbcasadi.validation.agreement.references import (
    Reference,
    Value,
    references_of_frame,
    references_of_members,
)
from mbcasadi.validation.agreement.samples import Sample, random_sample
from mbcasadi.validation.agreement.sizes import measure_sizes

EXACT = 1e-10  # rounding of two independent algorithms, thirty bodies deep


class Agreement(NamedTuple):
    """How well one quantity agrees.

    Attributes:
        quantity: name of the `System` member, or of a frame's Function.
        error: worst relative error over all states, infinite where the member is NaN; NaN where
            nothing could be compared.
        state: index of the state with the worst error.
        unit: of the quantity.
        note: why nothing could be compared, or how the reference was computed.
    """

    quantity: str
    error: float
    state: int
    unit: str
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both agree to rounding; False where nothing could be compared."""
        return self.error <= EXACT


class Check(NamedTuple):
    """A reference, and the value of the system's member as a function of a sample."""

    reference: Reference
    value: Value


@checked
def agreement_with_mujoco(
    system: System, model: mujoco.MjModel, states: int = 20, seed: int = 0, frames: int = 6
) -> list[Agreement]:
    """Compare every member of a system with MuJoCo at random states.

    MuJoCo has no counterpart of `coriolis_matrix`, `constraint_rate` and the `loop_` members; they
    have no entry. A sensor is compared under random forces on the bodies, with MuJoCo's
    acceleration and what MuJoCo counts as external. Spatial tendons have an entry for
    `dynamics.tendon_wrenches`. `judge` turns the entries into a verdict.

    Args:
        system: read from the same model.
        model: the compiled model; it is not changed.
        states: number of random states.
        seed: of the random states.
        frames: number of named sites, and of bodies, to compare.

    Returns:
        One entry for each quantity; refused members are listed with the reason.

    Raises:
        ModelError: system and model differ in size.
    """
    _require_same_size(system, model)
    require_whole(1, states=states)
    require_whole(0, seed=seed, frames=frames)
    checks, refused = _member_checks(system)
    for kind in ("site", "body"):
        for i in frame_values.spread_ids(model, kind, frames):
            checks += _frame_checks(system, model, kind, i)
    checks += [Check(*pair) for pair in sensor_values.comparisons(system, model)]
    checks += [Check(*pair) for pair in tendon_values.comparisons(system)]
    smooth, rng = smooth_copy(model), np.random.default_rng(seed)
    errors = np.zeros((states, len(checks)))
    with capture_warnings():
        sizes = measure_sizes(smooth)
        for row in errors:
            sample = random_sample(smooth, sizes, rng)
            row[:] = [_error(check, sample) for check in checks]
    return [*(_worst(check, errors[:, k]) for k, check in enumerate(checks)), *refused]


def _worst(check: Check, errors: Array) -> Agreement:
    """Return the entry of the state with the largest error; NaN marks states without a value."""
    quantity, unit, note = check.reference.quantity, check.reference.unit, check.reference.note
    if np.all(np.isnan(errors)):
        return Agreement(quantity, float("nan"), 0, unit, "MuJoCo gives no value at any state")
    state = int(np.nanargmax(errors))
    return Agreement(quantity, float(errors[state]), state, unit, note)


def _require_same_size(system: System, model: mujoco.MjModel) -> None:
    sizes = (system.nq, system.nv, system.nu)
    expected = (model.nq, model.nv, model.nu)
    if sizes != expected:
        raise ModelError(
            f"the system '{system.name}' has (nq, nv, nu) = {sizes}, the MuJoCo model has "
            f"{expected}; expected a system read from this model"
        )


def _member_checks(system: System) -> tuple[list[Check], list[Agreement]]:
    """Return the checks of all members, and an entry for each member that the system refuses."""
    checks: list[Check] = []
    refused: list[Agreement] = []
    for reference in references_of_members(system.nu, system.na, system.nc):
        try:
            value = _member_value(system.member(reference.quantity))
        except UnsupportedFeatureError as error:
            quantity, unit = reference.quantity, reference.unit
            refused.append(Agreement(quantity, float("nan"), 0, unit, str(error)))
        else:
            checks.append(Check(reference, value))
    return checks, refused


def _frame_checks(system: System, model: mujoco.MjModel, kind: str, i: int) -> list[Check]:
    name = mujoco.mj_id2name(model, frame_values.OBJECTS[kind], i)
    functions, references = system.frame(name, kind), references_of_frame(name, kind, i)
    members = {
        "pose": lambda s: _pose(functions, s),
        "jacobian": _member_value(functions.jacobian),
        "velocity": _member_value(functions.velocity),
        "bias": _member_value(functions.bias),
    }
    return [Check(references[what], value) for what, value in members.items()]


def _pose(functions: FrameFunctions, s: Sample) -> Array:
    p, R = functions.pose(s.q)
    return np.column_stack([R.full(), p.full()])


def _member_value(function: ca.Function) -> Value:
    """Return a Function's first output, its inputs taken from the sample by their names."""
    fields = function.name_in()
    return lambda s: np.asarray(function(*(getattr(s, field) for field in fields)).full())


def _error(check: Check, s: Sample) -> float:
    size = check.reference.size(s)
    reference = np.asarray(check.reference.value(s), dtype=float) / size
    value = check.value(s).reshape(reference.shape) / size
    compared = ~np.isnan(reference)
    if reference.size and not np.any(compared):
        return float("nan")
    difference = float(np.max(np.abs(value - reference)[compared], initial=0.0))
    if np.isnan(difference):
        return float("inf")  # NaN means that nothing could be compared
    largest = float(np.max(np.abs(reference[compared]), initial=0.0))
    return difference / max(largest, check.reference.share)
