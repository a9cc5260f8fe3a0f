"""A `System` against MuJoCo, quantity by quantity, at random states.

Forces and inertias are compared in the metric of the inertia itself: row i is divided by
`sqrt(M_ii)`, so that a small rotational inertia counts as much as a large mass. The error of a
quantity at one state is the largest difference over the largest value that MuJoCo gives.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.mjcf import capture_warnings
from mbcasadi.shapes import require_whole
from mbcasadi.system import FrameFunctions, System
from mbcasadi.validation.agreement import frame_values
from mbcasadi.validation.agreement import mujoco_values as mj
from mbcasadi.validation.agreement.mujoco_values import Sample
from mbcasadi.validation.agreement.potential_energy import potential_energy

Array = NDArray[np.float64]
Value = Callable[[Sample], Array]
Scaling = Literal["plain", "force", "inertia"]

# Values below it (in the scaled unit) consist of the rounding of intermediate results of order
# one: their relative error has no meaning.
SMALLEST_SCALE = 1e-3
EXACT = 1e-10  # rounding of two independent algorithms, thirty bodies deep
# A finite difference has a rounding error of 1e-16 times values of order ten over the step.
SMALLEST_SCALE_BY_DIFFERENCE = 1e-1
BY_DIFFERENCE = "reference by a seven-point difference of MuJoCo's"


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


class Reference(NamedTuple):
    """MuJoCo's value of one quantity as a function of a sample, and how errors are scaled."""

    quantity: str
    unit: str
    value: Value
    scaling: Scaling = "plain"
    note: str = ""


class Check(NamedTuple):
    """A reference, and the value of the system's member as a function of a sample."""

    reference: Reference
    value: Value


@checked
def compare(
    system: System, model: mujoco.MjModel, states: int = 20, seed: int = 0, frames: int = 6
) -> list[Agreement]:
    """Compare every member of a system with MuJoCo at random states.

    MuJoCo has no counterpart of `coriolis_matrix`, `constraint_rate` and the `loop_` members; they
    have no entry. `judge` turns the entries into a verdict.

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
    smooth, rng = mj.smooth_copy(model), np.random.default_rng(seed)
    errors = np.zeros((states, len(checks)))
    with capture_warnings():
        for row in errors:
            sample = mj.random_sample(smooth, rng)
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
    for reference in _references(system):
        try:
            value = _member_value(system.member(reference.quantity))
        except UnsupportedFeatureError as error:
            quantity, unit = reference.quantity, reference.unit
            refused.append(Agreement(quantity, float("nan"), 0, unit, str(error)))
        else:
            checks.append(Check(reference, value))
    return checks, refused


def _references(system: System) -> list[Reference]:
    """Return MuJoCo's side of all members that this system has."""
    force, position = "N, N m", "m, rad"
    references = [
        Reference("mass_matrix", "kg, kg m, kg m²", mj.inertia, "inertia"),
        Reference("bias_force", force, lambda s: s.data.qfrc_bias, "force"),
        Reference("passive_force", force, lambda s: s.data.qfrc_passive, "force"),
        Reference("gravity_force", force, mj.gravity_force, "force"),
        Reference("kinetic_energy", "J", mj.kinetic_energy),
        Reference("potential_energy", "J", potential_energy),
        Reference("velocity_map", "1", mj.velocity_map, note=f"{BY_DIFFERENCE} mj_integratePos"),
        Reference("integrate", position, lambda s: mj.integrate(s.model, s.q, s.v)),
        Reference("difference", position, lambda s: mj.difference(s.model, s.q, s.q1)),
        Reference("actuator_force", force, lambda s: s.data.qfrc_actuator, "force"),
        Reference("actuator_bias", force, mj.actuator_bias, "force"),
    ]
    if system.nu:
        references.append(Reference("actuation", f"{force} per control", mj.actuation, "force"))
    if system.na:
        references.append(Reference("act_dot", "1/s", lambda s: s.data.act_dot))
    if system.nc:
        note = f"{BY_DIFFERENCE} efc_J"
        references += [
            Reference("constraint", position, mj.constraint),
            Reference("constraint_jacobian", f"{position} per {position}", mj.constraint_jacobian),
            Reference("constraint_bias", "m/s², rad/s²", mj.constraint_bias, note=note),
        ]
    return references


def _frame_checks(system: System, model: mujoco.MjModel, kind: str, i: int) -> list[Check]:
    name = mujoco.mj_id2name(model, frame_values.OBJECTS[kind], i)
    functions = system.frame(name, kind)
    members = (
        ("pose", "m, 1", frame_values.pose, lambda s: _pose(functions, s)),
        ("jacobian", "m, 1", frame_values.jacobian, _member_value(functions.jacobian)),
        ("velocity", "m/s, rad/s", frame_values.velocity, _member_value(functions.velocity)),
        ("bias", "m/s², rad/s²", frame_values.bias, _member_value(functions.bias)),
    )
    return [
        Check(Reference(f"{kind} '{name}': {what}", unit, _frame_value(value, kind, i)), member)
        for what, unit, value, member in members
    ]


def _frame_value(value: Callable[[Sample, str, int], Array], kind: str, i: int) -> Value:
    return lambda s: value(s, kind, i)


def _pose(functions: FrameFunctions, s: Sample) -> Array:
    p, R = functions.pose(s.q)
    return np.column_stack([R.full(), p.full()])


def _member_value(function: ca.Function) -> Value:
    """Return a Function's first output, its inputs taken from the sample by their names."""
    names = function.name_in()
    if names == ["q0", "q1"]:
        return lambda s: np.asarray(function(s.q, s.q1).full())
    fields = ["v" if name == "dv" else name for name in names]
    return lambda s: np.asarray(function(*(getattr(s, field) for field in fields)).full())


def _error(check: Check, s: Sample) -> float:
    reference = np.asarray(check.reference.value(s), dtype=float)
    value = check.value(s).reshape(reference.shape)
    if check.reference.scaling != "plain":
        root = np.sqrt(np.diag(mj.inertia(s)))
        weight = root[:, None] if reference.ndim == 2 else root
        if check.reference.scaling == "inertia":
            weight = root[:, None] * root
        value, reference = value / weight, reference / weight
    compared = ~np.isnan(reference)
    if reference.size and not np.any(compared):
        return float("nan")
    difference = float(np.max(np.abs(value - reference)[compared], initial=0.0))
    if np.isnan(difference):
        return float("inf")  # NaN means that nothing could be compared
    by_difference = check.reference.note.startswith(BY_DIFFERENCE)
    smallest = SMALLEST_SCALE_BY_DIFFERENCE if by_difference else SMALLEST_SCALE
    return difference / max(float(np.max(np.abs(reference[compared]), initial=0.0)), smallest)
