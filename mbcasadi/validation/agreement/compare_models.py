"""`mb.compare`: two models against each other, quantity by quantity, at random states.

Each model is evaluated in its own coordinates, a `System` by its members, a MuJoCo model by MuJoCo.
An error is relative to the second value, or to a share of its natural size (`agreement`).

Rows of constraints may be written in many ways. Where one side has equations of its own, or the
numbers of rows differ, what they mean is compared, at poses that the second model has closed:

    how far the first is from closed, `A⁺ phi`;   what may move, `P = I - A⁺ A`;
    what bends the path, `A⁺ c`, at velocities `P v`.
"""

from collections.abc import Sequence

import numpy as np

from mbcasadi.argument_kinds import checked
from mbcasadi.plant import Source
from mbcasadi.shapes import require_name, require_positive, require_whole
from mbcasadi.system import System
from mbcasadi.validation.agreement.agreement import EXACT
from mbcasadi.validation.agreement.coordinate_map import (
    CoordinateMap,
    Coordinates,
    coordinate_map,
)
from mbcasadi.validation.agreement.manifold import Array
from mbcasadi.validation.agreement.model_agreement import Difference, ModelAgreement
from mbcasadi.validation.agreement.row_meaning import MEANING, close_pose, meaning_of_rows
from mbcasadi.validation.agreement.sides import (
    Draw,
    Evaluation,
    ModelSide,
    SystemSide,
    side_of,
)

ROWS = ("constraint", "constraint_jacobian", "constraint_bias")
ENERGY = "potential_energy"


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
    pairing = _Pairing(own, other, coordinates, seed)
    found = pairing.differences(states)
    for name in allow_missing:
        require_name("quantity", name, [difference.quantity for difference in found])
    return ModelAgreement(
        names=(own.name, other.name),
        differences=tuple(found),
        tolerance=tolerance,
        allowed=tuple(allow_missing),
        notes=pairing.notes,
    )


class _Pairing:
    """Two sides and the map between their coordinates."""

    def __init__(
        self,
        own: ModelSide | SystemSide,
        other: ModelSide | SystemSide,
        coordinates: Coordinates,
        seed: int,
    ) -> None:
        own.add_frames_of(list(other.units()))
        self.own, self.other = own, other
        self.map: CoordinateMap = coordinate_map(own, other, coordinates)
        self.rng = np.random.default_rng(seed)
        rows = own.sizes[4], other.sizes[4]
        self.by_meaning = all(rows) and (own.own_rows or other.own_rows or rows[0] != rows[1])
        self.notes = self._notes(rows)

    def _notes(self, rows: tuple[int, int]) -> tuple[str, ...]:
        pairs = {a: b for a, b in self._names().items() if a != b}
        matched = ", ".join(f"{a} is {b}" for a, b in pairs.items())
        notes = [f"coordinates: {matched}"] if pairs else []
        if self.by_meaning:
            notes.append(
                f"the constraints ({rows[0]} and {rows[1]} rows) are compared by what they mean, "
                f"at poses closed by {self.other.name}"
            )
        frames = {name.rpartition(": ")[0] for name in self.other.units() if is_frame(name)}
        absent = sorted(name for name in frames if self.own.refusal(f"{name}: pose"))
        if absent:
            notes.append(f"frames that {self.own.name} has not: {', '.join(absent)}")
        return tuple(notes)

    def _names(self) -> dict[str, str]:
        place = {block.v: block.name for block in self.own.blocks}
        return {place[int(self.map.v[b.v])]: b.name for b in self.other.blocks}

    def differences(self, states: int) -> list[Difference]:
        """Return one entry for each quantity of either side."""
        units = self.other.units()
        reasons = {
            name: self._reason(name)
            for name in dict.fromkeys((*units, *self.own.units()))
            if not (is_frame(name) and self.own.refusal(name))
        }
        names = [name for name, reason in reasons.items() if not reason]
        worst: dict[str, Difference] = {}
        base = self._pair(names, self.other.draw(self.rng))
        for _ in range(states):
            at = self.other.draw(self.rng)
            pair = self._pair(names, at)
            if ENERGY in pair:
                pair[ENERGY] = _from(pair[ENERGY], base[ENERGY])
            self._keep_worst(worst, pair, at, units)
            if self.by_meaning:
                self._keep_meaning(worst)
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
        sizes = self.own.sizes, self.other.sizes
        if missing:
            rows = f": it has {sizes[0][4]} rows, {self.other.name} has {sizes[1][4]}"
            return missing + (rows if name in ROWS else "")
        if name in ROWS and self.by_meaning:
            return "compared by meaning"
        if name in ("actuation", "actuator_force") and sizes[0][2] != sizes[1][2]:
            return (
                f"{self.own.name} has {sizes[0][2]} controls, {self.other.name} has {sizes[1][2]}"
            )
        if name in ("act_dot", "actuator_force") and sizes[0][3] != sizes[1][3]:
            return (
                f"{self.own.name} has {sizes[0][3]} activations, {self.other.name} has "
                f"{sizes[1][3]}"
            )
        return ""

    def _pair(self, names: Sequence[str], at: Draw) -> dict[str, tuple[Array, Evaluation]]:
        """Return both values of each quantity, in the order of the second side."""
        values = self.own.evaluate(names, self.map.to_first(at))
        references = self.other.evaluate(names, at)
        pairs = {}
        for name, reference in references.items():
            shape = reference.value.shape
            value = values[name].value
            if value.ndim > 1 and value.shape[1] == 1 and len(shape) == 1:
                value = value[:, 0]
            pairs[name] = self.map.to_second(name, value), reference
        return pairs

    def _keep_worst(
        self,
        worst: dict[str, Difference],
        pair: dict[str, tuple[Array, Evaluation]],
        at: Draw,
        units: dict[str, str],
    ) -> None:
        for name, (value, reference) in pair.items():
            error = relative_error(value, reference)
            if name in worst and not error > worst[name].error:
                continue
            note = "up to a constant" if name == ENERGY else ""
            scale = float(np.max(np.abs(reference.value), initial=0.0))
            worst[name] = Difference(name, error, scale, units.get(name, ""), note,
                                     self.map.to_first(at), at, value, reference.value)  # fmt: skip

    def _keep_meaning(self, worst: dict[str, Difference]) -> None:
        at = close_pose(self.other, self.other.draw(self.rng))
        if at is None:
            return
        own = meaning_of_rows(self.own, self.map.to_first(at))
        reference = meaning_of_rows(self.other, at)
        order = {MEANING[0]: "difference", MEANING[1]: "mass_matrix", MEANING[2]: "bias_force"}
        pair = {
            name: (
                self.map.to_second(order[name], own[name]),
                Evaluation(reference[name], np.ones(reference[name].shape), 1.0),
            )
            for name in MEANING
        }
        units = dict(zip(MEANING, ("m, rad", "1", "m/s², rad/s²"), strict=True))
        self._keep_worst(worst, pair, at, units)


def is_frame(name: str) -> bool:
    """Return whether a quantity is a Function of a frame."""
    return "': " in name


def _from(
    pair: tuple[Array, Evaluation], base: tuple[Array, Evaluation]
) -> tuple[Array, Evaluation]:
    """Return both values from those of a first state."""
    (value, reference), (first, reference_first) = pair, base
    moved = reference._replace(value=reference.value - reference_first.value)
    return np.reshape(value - first, np.shape(moved.value)), moved


def relative_error(value: Array, reference: Evaluation) -> float:
    """Return the largest difference over the largest reference, both over their sizes.

    Infinite where the value is NaN or has another shape; NaN entries of the reference are left
    out.
    """
    if value.size != reference.value.size:
        return float("inf")
    expected = reference.value / reference.size
    compared = ~np.isnan(expected)
    difference = np.abs(np.reshape(value, expected.shape) / reference.size - expected)[compared]
    error = float(np.max(difference, initial=0.0))
    if np.isnan(error):
        return float("inf")
    largest = float(np.max(np.abs(expected[compared]), initial=0.0))
    return error / max(largest, reference.share)
