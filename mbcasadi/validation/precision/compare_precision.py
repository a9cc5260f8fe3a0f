"""What single precision costs: the same ticks in float and in double, and their differences.

Both exports get the same inputs, those of the float rounded to it: states of the mechanism, the
reference that holds the pose, and the state `z` that double's tick on this input has left, so that
solvers start warm. What differs is rounding in the controller, and of the measurement.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen.calls import new_memory
from mbcasadi.codegen.export import export_c
from mbcasadi.codegen.precision import Real
from mbcasadi.codegen.project import CProject
from mbcasadi.control.laws.poses import sampled_poses
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ExportError
from mbcasadi.shapes import require_positive
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]
Record = dict[str, Array]

SPREAD, SPEED = 0.2, 0.5  # rad or m about the pose; rad/s or m/s
RANK = 1e-9  # relative, of the constraint at a sampled pose


@dataclass(frozen=True)
class Distribution:
    """Median, 99th percentile and largest of many numbers."""

    median: float
    p99: float
    max: float


def _distribution(values: Array) -> Distribution:
    """Return that of some numbers; zeros of none."""
    if not values.size:
        return Distribution(0.0, 0.0, 0.0)
    return Distribution(
        float(np.median(values)), float(np.percentile(values, 99)), float(values.max())
    )


@summarised
@dataclass(frozen=True)
class PrecisionReport:
    """Float beside double on the same inputs.

    Attributes:
        name: of the controller.
        ticks: how many were compared.
        solved: ticks whose status is the same in both, with a control that is no safe output; the
            errors are of these.
        u_error: largest difference of an entry of u, in its unit, N m or N as a rule.
        u_size: the largest |u| of double.
        residual_double, residual_float: largest of the law's own residuals, relative; None where a
            law has none.
        statuses: of each pair (double, float) the number of ticks.
        time_double, time_float: of a tick on this machine, s.
        memory_double, memory_float: bytes of one controller.
    """

    name: str
    ticks: int
    solved: int
    u_error: Distribution
    u_size: float
    residual_double: Distribution | None
    residual_float: Distribution | None
    statuses: dict[tuple[int, int], int]
    time_double: Distribution
    time_float: Distribution
    memory_double: int
    memory_float: int

    @property
    def differing(self) -> int:
        """Ticks with another status in float than in double."""
        return sum(count for (double, single), count in self.statuses.items() if double != single)

    def _summary(self) -> dict[str, object]:
        return {"name": self.name, "ticks": self.ticks, "differing status": self.differing}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold."""
        data = asdict(self)
        pairs = sorted(self.statuses.items())
        data["statuses"] = [{"double": d, "float": f, "ticks": n} for (d, f), n in pairs]
        return data

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def __str__(self) -> str:
        rows = [
            ("error of u", self.u_error, 1.0),
            ("residual in double", self.residual_double, 1.0),
            ("residual in float", self.residual_float, 1.0),
            ("time in double, µs", self.time_double, 1e6),
            ("time in float, µs", self.time_float, 1e6),
        ]
        pairs = ", ".join(f"{d} and {f}: {n}" for (d, f), n in sorted(self.statuses.items()))
        lines = [
            f"{self.name}: {self.ticks} ticks, {self.solved} compared, |u| <= {self.u_size:.3g}"
        ]
        lines += [f"{'':20}{'median':>10}{'p99':>10}{'max':>10}"]
        lines += [
            f"{title:20}{unit * d.median:10.2g}{unit * d.p99:10.2g}{unit * d.max:10.2g}"
            for title, d, unit in rows
            if d is not None
        ]
        lines += [f"status in double and float: {pairs}"]
        return "\n".join([*lines, f"memory {self.memory_double} and {self.memory_float} bytes"])


@checked
def compare_precision(
    controller: Controller | HasController | ca.Function,
    inputs: Mapping[str, ArrayLike] | None = None,
    *,
    states: int = 1000,
    seed: int = 0,
    flags: Sequence[str] | None = None,
) -> PrecisionReport:
    """Run the float and the double export of a controller on the same inputs.

    Args:
        controller: as in `export_c`.
        inputs: name → (ticks, size), or (size,) for a constant value. What is missing: `q` and `v`
            are sampled near the initial pose, on the constraints, where the controller has a
            system; `ref` holds that pose, the mask is on, and all else as in C.
        states: number of them, where they are sampled.
        seed: of the random numbers.
        flags: of the compiler, as in `CProject.build`.

    Raises:
        ExportError: as in `export_c`; or `q` is missing and the controller has no system.
        ShapeError, UnknownNameError: an input does not fit.
    """
    require_positive(states=states)
    with tempfile.TemporaryDirectory() as folder:
        double, single = (export_c(controller, Path(folder, real), real=real) for real in _REALS)
        record = _record(controller, double, dict(inputs or {}), int(states), int(seed))
        return _report(double, single, record, flags)


_REALS: tuple[Real, Real] = ("double", "float")


def _record(
    controller: object, project: CProject, given: dict[str, ArrayLike], states: int, seed: int
) -> Record:
    """Return every input but z that is given or can be sampled, one row for each tick."""
    names = [s["name"] for s in project.manifest["inputs"]]
    system = _system_of(controller)
    if "q" in names and "q" not in given:
        if system is None:
            raise ExportError(
                f"{project.name} has the input q and no system to sample states of; pass "
                'inputs={"q": ..., "v": ...}'
            )
        given |= _sampled(system, states, seed)
    q = np.atleast_2d(np.asarray(given["q"], dtype=float)) if "q" in given else np.zeros((1, 0))
    reference_at = getattr(controller, "reference_at", None)
    if "ref" in names and "ref" not in given and reference_at is not None:
        given["ref"] = reference_at(q.mean(axis=0) if system is None else _pose(system))
    if "mask" in names and "mask" not in given:
        given["mask"] = np.ones(_size(project, "mask"))
    arrays = {name: np.atleast_2d(np.asarray(value, float)) for name, value in given.items()}
    ticks = max((len(array) for array in arrays.values()), default=1)
    return {
        k: np.broadcast_to(a, (ticks, a.shape[1])) if len(a) == 1 else a for k, a in arrays.items()
    }


def _system_of(controller: object) -> Any:
    """Return the mechanism of a controller or of its problem; None without one."""
    for owner in (
        controller,
        getattr(controller, "ocp", None),
        getattr(controller, "problem", None),
    ):
        system = getattr(owner, "system", None)
        if system is not None:
            return system
    return None


def _pose(system: Any) -> Array:
    pose: Array = np.asarray(sampled_poses(system, 1, spread=0.0))[0]
    return pose


def _size(project: CProject, name: str) -> int:
    return next(s["size"] for s in project.manifest["inputs"] if s["name"] == name)


def _sampled(system: Any, states: int, seed: int) -> Record:
    """Return closed poses and velocities along the constraints."""
    q = np.asarray(sampled_poses(system, states, spread=SPREAD, seed=seed))
    rng = np.random.default_rng(seed)
    v = SPEED * rng.standard_normal((len(q), system.nv))
    for k in range(len(q)):
        A = np.array(system.constraint_jacobian(q[k])) if system.nc else np.zeros((0, system.nv))
        v[k] -= np.linalg.pinv(A, RANK) @ (A @ v[k])
    return {"q": q, "v": v}


def _report(
    double: CProject, single: CProject, record: Record, flags: Sequence[str] | None
) -> PrecisionReport:
    ticks = max((len(array) for array in record.values()), default=1)
    runs: dict[str, list[dict[str, Array]]] = {"double": [], "float": []}
    memories = tuple(new_memory(p.manifest, p.build(flags=flags).path) for p in (double, single))
    warm = []
    for k in range(ticks):
        tick = {name: array[k] for name, array in record.items()}
        if double.manifest["z0"]:
            z = double.step(memories[0], tick)["z_next"]
            tick["z"] = z
            warm.append(z)
        runs["double"].append(double.step(memories[0], tick))
        runs["float"].append(single.step(memories[1], tick))
    record = dict(record) | ({"z": np.array(warm)} if warm else {})
    both = {real: _stacked(outputs) for real, outputs in runs.items()}
    statuses = [_statuses(both[real], ticks) for real in _REALS]
    safe = np.isin(statuses[0], double.manifest["safe_statuses"])
    compared = (statuses[0] == statuses[1]) & ~safe
    control = "u" if "u" in both["double"] else double.manifest["outputs"][0]["name"]
    u = [both[real][control][compared] for real in _REALS]
    residual = [_residual(both[real], compared) for real in _REALS]
    times = [project.time(record, flags=flags).seconds for project in (double, single)]
    return PrecisionReport(
        name=double.name,
        ticks=ticks,
        solved=int(compared.sum()),
        u_error=_distribution(np.abs(u[0] - u[1]).max(axis=1, initial=0.0)),
        u_size=float(np.abs(u[0]).max(initial=0.0)),
        residual_double=residual[0],
        residual_float=residual[1],
        statuses=dict(Counter(zip(*(s.tolist() for s in statuses), strict=True))),
        time_double=_distribution(times[0]),
        time_float=_distribution(times[1]),
        memory_double=double.manifest["memory_bytes"],
        memory_float=single.manifest["memory_bytes"],
    )


def _stacked(outputs: list[dict[str, Array]]) -> Record:
    return {name: np.array([each[name] for each in outputs]) for name in outputs[0]}


def _statuses(outputs: Record, ticks: int) -> NDArray[np.int64]:
    status = outputs.get("status")
    return np.zeros(ticks, np.int64) if status is None else status[:, 0].astype(np.int64)


def _residual(outputs: Record, compared: NDArray[np.bool_]) -> Distribution | None:
    if "residual" not in outputs:
        return None
    return _distribution(np.abs(outputs["residual"][compared]).max(axis=1, initial=0.0))
