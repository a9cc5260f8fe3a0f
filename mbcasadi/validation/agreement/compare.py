"""`mb.compare` and `agreement_with_mujoco`: two models, quantity by quantity, at random states.

Each model is evaluated in its own coordinates, a `System` by its members, a MuJoCo model by MuJoCo.
States are drawn in the mechanism's own sizes, and each quantity is divided by its own natural size
(`quantities`): nothing here depends on the units of the model. Forces and inertias are compared in
the metric of the inertia itself: row i is divided by `sqrt(M_ii)`, so that a small rotational
inertia counts as much as a large mass. The error of a quantity at one state is the largest
difference over the largest value of the second side, or over a small share of the natural size
where that is more.

Rows of constraints may be written in many ways. Where one side has equations of its own, or the
numbers of rows differ, what they mean is compared, at poses that the second model has closed:

    how far the first is from closed, `A⁺ phi`;   what may move, `P = I - A⁺ A`;
    what bends the path, `A⁺ c`, at velocities `P v`.
"""

import math
from collections.abc import Sequence

import mujoco
import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ModelError
from mbcasadi.plant import Source
from mbcasadi.shapes import require_positive, require_whole
from mbcasadi.system import System
from mbcasadi.validation.agreement.agreement import (
    EXACT,
    Agreement,
    Difference,
    ModelAgreement,
    is_frame,
    is_worse,
    judge,
    relative_error,
)
from mbcasadi.validation.agreement.coordinate_map import Coordinates, coordinate_map
from mbcasadi.validation.agreement.derived_quantities import derived_quantities
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.mujoco_values import Draw
from mbcasadi.validation.agreement.quantities import Evaluation
from mbcasadi.validation.agreement.sides import ModelSide, Side, SystemSide, side_of

ROWS = ("constraint", "constraint_jacobian", "constraint_bias")
MEANING = ("constraint_gap", "constraint_projector", "constraint_acceleration")
UNITS_OF_MEANING = ("m, rad", "1", "m/s², rad/s²")
ENERGY = "potential_energy"

CLOSED = 1e-12
"""Distance from the manifold, in rad or m, of a pose that counts as closed."""

STEPS, LONGEST = 60, 0.5
"""Of Newton's iteration to the manifold: their number, and the largest, rad or m."""

RANK_TOL = 1e-7
"""Singular values below this share of the largest one are those of dependent rows."""

Values = dict[str, tuple[Array, Evaluation]]
"""Both sides' values by name, in the order of the second side."""


@checked
def compare(
    first: System | Source,
    second: System | Source,
    *,
    coordinates: Coordinates = None,
    states: int = 20,
    seed: int = 0,
    tolerance: float = EXACT,
    allow_missing: Sequence[str] = (),
    frames: int = 6,
) -> ModelAgreement:
    """Compare two models: equations of your own and a MuJoCo twin, or two versions of a robot.

    Potential energies may differ by a constant. Coordinates must be counted in the same sense
    from the same zero; controls are matched by name where both sides have the same names, else
    by order.

    Args:
        first, second: a `System` of `from_lagrangian`, `from_equations` or `read_mjcf`, or a
            model: MJCF or URDF file, XML text, `MjSpec`, `MjModel`.
        coordinates: name in the first → name in the second, of those joints whose names differ;
            "order" matches them one after the other.
        states: number of random states.
        seed: of the random states.
        tolerance: largest relative error that is an agreement.
        allow_missing: quantities that need not be compared.
        frames: number of named sites, and of bodies, of a MuJoCo model to compare, where the
            other side has frames.

    Raises:
        ModelError: a model cannot be read, or the two have different joints.
        ProblemError: the names do not say which coordinate is which.
        UnknownNameError: a name in `allow_missing` is no quantity of the comparison.
    """
    require_whole(1, states=states)
    require_whole(0, seed=seed, frames=frames)
    require_positive(tolerance=tolerance)
    sides = side_of(first, frames), side_of(second, frames)
    swapped = isinstance(sides[0], ModelSide) and isinstance(sides[1], SystemSide)
    own, other = (sides[1], sides[0]) if swapped else sides
    if swapped and isinstance(coordinates, dict):
        coordinates = {b: a for a, b in coordinates.items()}
    comparison = _Comparison(own, other, coordinates, seed)
    differences = comparison.differences(states)
    judge(differences, tolerance, allow_missing)
    return ModelAgreement(
        names=(own.name, other.name),
        differences=tuple(differences),
        tolerance=tolerance,
        allowed=tuple(allow_missing),
        notes=comparison.notes(),
    )


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
    require_whole(1, states=states)
    require_whole(0, seed=seed, frames=frames)
    sizes, expected = (system.nq, system.nv, system.nu), (model.nq, model.nv, model.nu)
    if sizes != expected:
        raise ModelError(
            f"the system '{system.name}' has (nq, nv, nu) = {sizes}, the MuJoCo model has "
            f"{expected}; expected a system read from this model"
        )
    own, other = SystemSide(system), ModelSide(model, frames, world=True)
    comparison = _Comparison(own, other, "order", seed)
    names = [name for name in other.quantities if not own.refusal(name)]
    derived = derived_quantities(system, model)
    quantities = other.quantities | {quantity.name: quantity for quantity, _ in derived}
    worst: dict[str, Agreement] = {}
    for state in range(states):
        at = other.draw(comparison.rng)
        values, s = comparison.values(names, at), other.sample(at)
        values |= {quantity.name: (ours(s), quantity.at(s)) for quantity, ours in derived}
        for name, pair in values.items():
            error = relative_error(*pair)
            if name not in worst or is_worse(error, worst[name].error):
                unit, note = quantities[name].unit, quantities[name].note
                note = "MuJoCo gives no value at any state" if math.isnan(error) else note
                worst[name] = Agreement(name, error, state, unit, note)
    refused = [Agreement(n, math.nan, 0, *unit_note) for n, unit_note in own.refused.items()]
    return [*sorted(worst.values(), key=lambda entry: is_frame(entry.quantity)), *refused]


class _Comparison:
    """Two sides and the map between their coordinates."""

    def __init__(
        self,
        own: ModelSide | SystemSide,
        other: ModelSide | SystemSide,
        coordinates: Coordinates,
        seed: int,
    ) -> None:
        own.add_frames(other.frames)
        self.own, self.other = own, other
        self.map = coordinate_map(own, other, coordinates)
        self.rng = np.random.default_rng(seed)
        self.rows = own.sizes[4], other.sizes[4]
        written_otherwise = own.own_rows or other.own_rows or self.rows[0] != self.rows[1]
        self.by_meaning = all(self.rows) and written_otherwise

    def notes(self) -> tuple[str, ...]:
        """Return how coordinates and rows were matched."""
        place = {block.v: block.name for block in self.own.blocks}
        names = [(place[int(self.map.v[b.v])], b.name) for b in self.other.blocks]
        matched = ", ".join(f"{a} is {b}" for a, b in names if a != b)
        notes = [f"coordinates: {matched}"] if matched else []
        if self.by_meaning:
            notes.append(
                f"the constraints ({self.rows[0]} and {self.rows[1]} rows) are compared by what "
                f"they mean, at poses closed by {self.other.name}"
            )
        frames = self.other.frames.keys() - self.own.frames.keys()
        absent = sorted(f"{kind} '{name}'" for kind, name in frames)
        if absent:
            notes.append(f"frames that {self.own.name} has not: {', '.join(absent)}")
        return tuple(notes)

    def differences(self, states: int) -> list[Difference]:
        """Return one entry for each quantity of either side."""
        units = {name: quantity.unit for name, quantity in self.other.quantities.items()}
        units |= dict(zip(MEANING, UNITS_OF_MEANING, strict=True))
        reasons = {
            name: self._reason(name)
            for name in dict.fromkeys((*self.other.quantities, *self.own.quantities))
            if not (is_frame(name) and self.own.refusal(name))
        }
        names = [name for name, reason in reasons.items() if not reason]
        worst: dict[str, Difference] = {}
        base = self.values(names, self.other.draw(self.rng))
        for _ in range(states):
            at = self.other.draw(self.rng)
            values = self.values(names, at)
            if ENERGY in values:
                values[ENERGY] = _from(values[ENERGY], base[ENERGY])
            self._keep_worst(worst, values, at, units)
            closed = close_pose(self.other, self.other.draw(self.rng)) if self.by_meaning else None
            if closed is not None:
                self._keep_worst(worst, self._meaning(closed), closed, units)
        missing = [
            Difference(name, np.nan, np.nan, units.get(name, ""), reason)
            for name, reason in reasons.items()
            if reason and not (self.by_meaning and name in ROWS)
        ]
        if self.by_meaning and MEANING[0] not in worst:
            note = f"no pose was found that closes the constraints of {self.other.name}"
            missing += [Difference(name, np.nan, np.nan, "", note) for name in MEANING]
        return [*worst.values(), *missing]

    def _reason(self, name: str) -> str:
        """Return why a quantity cannot be compared, or ""."""
        missing = self.own.refusal(name) or self.other.refusal(name)
        if missing:
            rows = f": it has {self.rows[0]} rows, {self.other.name} has {self.rows[1]}"
            return missing + (rows if name in ROWS else "")
        if name in ROWS and self.by_meaning:
            return "compared by meaning"
        for needed, place, kind in (
            (("actuation", "actuator_force"), 2, "controls"),
            (("act_dot", "actuator_force"), 3, "activations"),
        ):
            first, second = self.own.sizes[place], self.other.sizes[place]
            if name in needed and first != second:
                return f"{self.own.name} has {first} {kind}, {self.other.name} has {second}"
        return ""

    def values(self, names: Sequence[str], at: Draw) -> Values:
        """Return both values of each quantity, in the order of the second side."""
        own = self.own.evaluate(names, self.map.to_first(at))
        references = self.other.evaluate(names, at)
        values = {}
        for name, reference in references.items():
            value, axes = own[name].value, self.other.quantities[name].axes
            if value.ndim > 1 and value.shape[1] == 1 and reference.value.ndim == 1:
                value = value[:, 0]
            values[name] = self.map.to_second(axes, value), reference
        return values

    def _keep_worst(
        self, worst: dict[str, Difference], values: Values, at: Draw, units: dict[str, str]
    ) -> None:
        for name, (value, reference) in values.items():
            error = relative_error(value, reference)
            if name in worst and not is_worse(error, worst[name].error):
                continue
            note = "up to a constant" if name == ENERGY else ""
            note = "no value at any state" if math.isnan(error) else note
            scale = float(np.max(np.abs(reference.value), initial=0.0))
            worst[name] = Difference(name, error, scale, units.get(name, ""), note,
                                     self.map.to_first(at), at, value, reference.value)  # fmt: skip

    def _meaning(self, at: Draw) -> Values:
        """Return both sides' meaning of the rows at a closed pose."""
        own = meaning_of_rows(self.own, self.map.to_first(at))
        reference = meaning_of_rows(self.other, at)
        return {
            name: (
                self.map.to_second(axes, own[name]),
                Evaluation(reference[name], np.ones(reference[name].shape), 1.0),
            )
            for name, axes in zip(MEANING, ("v", "vv", "v"), strict=True)
        }


def _from(
    pair: tuple[Array, Evaluation], base: tuple[Array, Evaluation]
) -> tuple[Array, Evaluation]:
    """Return both values from those of a first state."""
    (value, reference), (first, reference_first) = pair, base
    moved = reference._replace(value=reference.value - reference_first.value)
    return np.reshape(value - first, np.shape(moved.value)), moved


def close_pose(side: Side, at: Draw) -> Draw | None:
    """Return the draw at a closed pose near it, with v along the manifold; None without one."""
    for _ in range(STEPS):
        rows = side.evaluate(ROWS[:2], at)
        inverse = _pseudo_inverse(rows["constraint_jacobian"].value)
        step: Array = -inverse @ np.nan_to_num(rows["constraint"].value.ravel())
        size = float(np.max(np.abs(step), initial=0.0))
        if size < CLOSED:
            return at._replace(v=at.v - inverse @ (rows["constraint_jacobian"].value @ at.v))
        moved = at._replace(dv=step * min(1.0, LONGEST / size))
        at = at._replace(q=side.evaluate(("integrate",), moved)["integrate"].value.ravel())
    return None


def _pseudo_inverse(A: Array) -> Array:
    """Return `A⁺`, whose rank leaves out what is below `RANK_TOL`."""
    return np.asarray(np.linalg.pinv(A, rcond=RANK_TOL), dtype=np.float64)


def meaning_of_rows(side: Side, at: Draw) -> dict[str, Array]:
    """Return `A⁺ phi`, `I - A⁺ A` and `A⁺ c` by the names in `MEANING`."""
    phi, A, c = (evaluation.value for evaluation in side.evaluate(ROWS, at).values())
    inverse = _pseudo_inverse(A)
    values: tuple[Array, ...] = (
        inverse @ np.nan_to_num(phi.ravel()),
        np.eye(A.shape[1]) - inverse @ A,
        inverse @ c.ravel(),
    )
    return dict(zip(MEANING, values, strict=True))
