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

from mbcasadi.errors import ModelError, UnsupportedFeatureError
from mbcasadi.mjcf import capture_warnings
from mbcasadi.system import FrameFunctions, System
from mbcasadi.validation import judge, judge_frames
from mbcasadi.validation.judge import Sample

Array = NDArray[np.float64]
Value = Callable[[Sample], Array]
Scaling = Literal["plain", "force", "inertia"]

# Below this value (in the scaled unit) only the rounding of intermediate results of order one is
# left, and a relative error says nothing.
SMALLEST_SCALE = 1e-3
EXACT = 1e-10  # rounding of two independent algorithms, thirty bodies deep
# A difference carries 1e-16 times values of order ten over the step, and so needs a larger one.
SMALLEST_DIFFERENCED = 1e-1
BY_DIFFERENCE = "reference by a seven-point difference of MuJoCo's"


class Agreement(NamedTuple):
    """How well one quantity agrees.

    Attributes:
        quantity: name of the `System` member, or of a frame's Function.
        error: worst relative error over all states, infinite where ours is NaN; NaN where
            nothing could be compared.
        state: index of the state with the worst error.
        unit: of the quantity.
        note: why nothing could be compared, or how the reference was made.
    """

    quantity: str
    error: float
    state: int
    unit: str
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the two agree to rounding; False where nothing could be compared."""
        return self.error <= EXACT


class Check(NamedTuple):
    """One quantity: both values as functions of a sample, and how they are scaled."""

    quantity: str
    unit: str
    theirs: Value
    ours: Value
    scaling: Scaling = "plain"
    note: str = ""


class Reference(NamedTuple):
    """MuJoCo's value of one `System` member."""

    member: str
    unit: str
    value: Value
    scaling: Scaling = "plain"
    note: str = ""


def compare(
    system: System, model: mujoco.MjModel, states: int = 20, seed: int = 0, frames: int = 6
) -> list[Agreement]:
    """Compare every member of a system with MuJoCo at random states.

    Args:
        system: read from the same model.
        model: the compiled model; it is not changed.
        states: how many random states.
        seed: of the random states.
        frames: how many named sites, and how many bodies, are compared.

    Returns:
        One entry for each quantity; refused members are listed with the reason.

    Raises:
        ModelError: system and model differ in size.
    """
    _require_same_size(system, model)
    checks, absent = _member_checks(system)
    for kind in ("site", "body"):
        for i in judge_frames.spread_ids(model, kind, frames):
            checks += _frame_checks(system, model, kind, i)
    smooth, rng = judge.smooth_copy(model), np.random.default_rng(seed)
    errors = np.zeros((states, len(checks)))
    with capture_warnings():
        for row in errors:
            sample = judge.random_sample(smooth, rng)
            row[:] = [_error(check, sample) for check in checks]
    worst = np.argmax(errors, axis=0)
    return [
        *(
            Agreement(
                quantity=c.quantity,
                error=float(errors[state, k]),
                state=int(state),
                unit=c.unit,
                note=c.note,
            )
            for k, (c, state) in enumerate(zip(checks, worst, strict=True))
        ),
        *absent,
    ]


def _require_same_size(system: System, model: mujoco.MjModel) -> None:
    ours = (system.nq, system.nv, system.nu)
    theirs = (model.nq, model.nv, model.nu)
    if ours != theirs:
        raise ModelError(
            f"the system '{system.name}' has (nq, nv, nu) = {ours}, the MuJoCo model has {theirs}; "
            "expected a system read from this model"
        )


def _member_checks(system: System) -> tuple[list[Check], list[Agreement]]:
    """Return what can be compared, and what the system refuses to give."""
    checks: list[Check] = []
    absent: list[Agreement] = []
    for reference in _references(system):
        try:
            ours = _evaluated(system.member(reference.member))
        except UnsupportedFeatureError as refusal:
            absent.append(
                Agreement(reference.member, float("nan"), 0, reference.unit, str(refusal))
            )
            continue
        member, unit, theirs, scaling, note = reference
        checks.append(Check(member, unit, theirs, ours, scaling, note))
    return checks, absent


def _references(system: System) -> list[Reference]:
    """Return MuJoCo's side of all members that this system has."""
    force, position = "N, N m", "m, rad"
    references = [
        Reference("mass_matrix", "kg, kg m, kg m²", judge.inertia, "inertia"),
        Reference("bias_force", force, lambda s: s.data.qfrc_bias, "force"),
        Reference("passive_force", force, lambda s: s.data.qfrc_passive, "force"),
        Reference("gravity_force", force, judge.gravity_force, "force"),
        Reference("kinetic_energy", "J", judge.kinetic_energy),
        Reference("potential_energy", "J", judge.potential_energy),
        Reference("velocity_map", "1", judge.velocity_map, note=f"{BY_DIFFERENCE} mj_integratePos"),
        Reference("integrate", position, lambda s: judge.stepped(s.model, s.q, s.v)),
        Reference("difference", position, lambda s: judge.difference(s.model, s.q, s.q1)),
    ]
    if system.nu:
        references.append(
            Reference("actuator_force", force, lambda s: s.data.qfrc_actuator, "force")
        )
    if system.na:
        references.append(Reference("act_dot", "1/s", lambda s: s.data.act_dot))
    if system.nu:
        references += [
            Reference("actuation", f"{force} per control", judge.actuation, "force"),
            Reference("actuator_bias", force, judge.actuator_bias, "force"),
        ]
    if system.nc:
        note = f"{BY_DIFFERENCE} efc_J"
        references += [
            Reference("constraint", position, judge.constraint),
            Reference(
                "constraint_jacobian", f"{position} per {position}", judge.constraint_jacobian
            ),
            Reference("constraint_bias", "m/s², rad/s²", judge.constraint_bias, note=note),
        ]
    return references


def _frame_checks(system: System, model: mujoco.MjModel, kind: str, i: int) -> list[Check]:
    name = mujoco.mj_id2name(model, judge_frames.OBJECTS[kind], i)
    functions = system.frame(name, kind)
    label = f"{kind} '{name}'"
    return [
        Check(
            f"{label}: pose",
            "m, 1",
            lambda s: judge_frames.pose(s, kind, i),
            lambda s: _pose(functions, s),
        ),
        *(
            Check(f"{label}: {what}", unit, _of_frame(theirs, kind, i), _evaluated(ours))
            for what, unit, theirs, ours in (
                ("jacobian", "m, 1", judge_frames.jacobian, functions.jacobian),
                ("velocity", "m/s, rad/s", judge_frames.velocity, functions.velocity),
                ("bias", "m/s², rad/s²", judge_frames.bias, functions.bias),
            )
        ),
    ]


def _of_frame(value: Callable[[Sample, str, int], Array], kind: str, i: int) -> Value:
    return lambda s: value(s, kind, i)


def _pose(functions: FrameFunctions, s: Sample) -> Array:
    p, R = functions.pose(s.q)
    return np.column_stack([R.full(), p.full()])


def _evaluated(function: ca.Function) -> Value:
    """Return a Function's first output, its inputs taken from the sample by their names."""
    names = function.name_in()
    if names == ["q0", "q1"]:
        return lambda s: np.asarray(function(s.q, s.q1).full())
    fields = ["v" if name == "dv" else name for name in names]
    return lambda s: np.asarray(function(*(getattr(s, field) for field in fields)).full())


def _error(check: Check, s: Sample) -> float:
    theirs = np.asarray(check.theirs(s), dtype=float)
    ours = check.ours(s).reshape(theirs.shape)
    if check.scaling != "plain":
        root = np.sqrt(np.diag(judge.inertia(s)))
        weight = root[:, None] if theirs.ndim == 2 else root
        if check.scaling == "inertia":
            weight = root[:, None] * root
        ours, theirs = ours / weight, theirs / weight
    compared = ~np.isnan(theirs)
    if not np.any(compared):
        return 0.0
    gap = float(np.max(np.abs(ours - theirs)[compared]))
    if np.isnan(gap):
        return float("inf")  # NaN is kept for what could not be compared
    differenced = check.note.startswith(BY_DIFFERENCE)
    smallest = SMALLEST_DIFFERENCED if differenced else SMALLEST_SCALE
    return gap / max(float(np.max(np.abs(theirs[compared]))), smallest)
