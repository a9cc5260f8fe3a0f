"""One number of a run, and the table of all of them: what each means and how it is written."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import mujoco
import numpy as np

Quantity = Literal["number", "share", "length", "time"]


@dataclass(frozen=True)
class Metric:
    """One number of a run.

    Attributes:
        name: `group.name`, what a criterion refers to.
        value: in SI units, or a share.
        unit: "" for a share.
        note: where or when the value was reached, where that is known.
    """

    name: str
    value: float
    unit: str = ""
    note: str = ""


class MetricKind(NamedTuple):
    """What the metrics of one name are.

    Attributes:
        text: heading in tables.
        quantity: how values are written.
        larger_is_better: a criterion bounds it from below; any other one from above.
        unit: of numbers; those of tracking have the units of their components.
    """

    text: str
    quantity: Quantity = "number"
    larger_is_better: bool = False
    unit: str = ""


METRICS: dict[str, MetricKind] = {
    "tracking.rms": MetricKind("tracking error, worst RMS"),
    "tracking.max": MetricKind("tracking error, largest"),
    "tracking.rms_share": MetricKind("tracking error, RMS over amplitude", "share"),
    "tracking.max_share": MetricKind("tracking error, largest over amplitude", "share"),
    "tracking.rms_share_free": MetricKind(
        "tracking error, RMS over amplitude, while no motor is at its limit", "share"
    ),
    "tracking.hold_share": MetricKind("final error of constant targets, of their scale", "share"),
    "closure.plant": MetricKind("gap of the loops in MuJoCo", "length"),
    "closure.share": MetricKind("gap of the loops in MuJoCo, of the model's extent", "share"),
    "closure.static_share": MetricKind(
        "gap of the loops under weight alone at the start, of the model's extent", "share"
    ),
    "closure.rows": MetricKind("worst equality residual in MuJoCo", unit="m or rad"),
    "closure.model": MetricKind("residual of our constraint equations", unit="m or rad"),
    "agreement.force_median": MetricKind("constraint force against MuJoCo, median difference"),
    "agreement.force_max": MetricKind("constraint force against MuJoCo, largest difference"),
    "agreement.a_median": MetricKind("acceleration against MuJoCo, median difference"),
    "agreement.a_max": MetricKind("acceleration against MuJoCo, largest difference"),
    "torque.excess": MetricKind("control beyond its limit", unit="unit of u"),
    "torque.saturated": MetricKind("ticks with a control at its limit", "share"),
    "torque.max": MetricKind("largest control", unit="unit of u"),
    "cone.plant": MetricKind("friction-cone margin in MuJoCo, 0 where it slides", "share", True),
    "cone.controller": MetricKind("friction-cone margin of the controller's forces", "share", True),
    "contact.lost": MetricKind("active contacts without force", "share"),
    "contact.slip": MetricKind("displacement of an active contact on the floor", "length"),
    "contact.slip_share": MetricKind(
        "displacement of an active contact on the floor, of the model's extent", "share"
    ),
    "contact.force_normal": MetricKind(
        "planned normal force against MuJoCo's, RMS of the weight", "share"
    ),
    "contact.force_tangential": MetricKind(
        "planned tangential force against MuJoCo's, RMS of the weight", "share"
    ),
    "plant.height": MetricKind("least height of the centre of mass, of the first", "share", True),
    "plant.tilt": MetricKind("largest tilt of the base from its first attitude, rad", unit="rad"),
    "plant.body_contact": MetricKind("instants with more than feet on the ground", "share"),
    "plant.joint_beyond": MetricKind("joint beyond its range, of the range", "share"),
    "command.way_share": MetricKind("gap to where a command leads at the end, of the way", "share"),
    "command.heading": MetricKind("error of the heading to which a command leads", unit="rad"),
    "status.solved": MetricKind("ticks solved and verified", "share", True),
    "status.safe_output": MetricKind("ticks with a safe output", "share"),
    "status.longest_failure": MetricKind("longest run of ticks with a safe output", unit="ticks"),
    "status.check": MetricKind("largest residual of the self-check"),
    "limits.least": MetricKind("least margin of a bounded row, of its range", "share", True),
    "limits.soft_least": MetricKind("least margin of a soft row, of its range", "share", True),
    "limits.beyond": MetricKind("ticks of a row beyond its bound", "share"),
    "limits.near": MetricKind("ticks of a row at its bound", "share"),
    "prediction.start": MetricKind("error of the predicted initial state, of its motion", "share"),
    "prediction.next": MetricKind("error of the plan one sample ahead, of the motion", "share"),
    "prediction.quarter": MetricKind("error of the plan a quarter ahead, of the motion", "share"),
    "prediction.half": MetricKind(
        "error of the plan half the horizon ahead, of the motion", "share"
    ),
    "prediction.end": MetricKind("error of the plan at its end, of the motion", "share"),
    "estimate.velocity": MetricKind("estimated velocity of the base, RMS error", unit="m/s"),
    "estimate.tilt": MetricKind("estimated roll and pitch of the base, largest error", unit="rad"),
    "estimate.tilt_rms": MetricKind("estimated roll and pitch of the base, RMS error", unit="rad"),
    "estimate.drift": MetricKind(
        "estimated place of the base, error at the end, of the way", "share"
    ),
    "estimate.rate": MetricKind("estimated rate, worst RMS error", unit="rad/s or m/s"),
    "estimate.within": MetricKind(
        "ticks with an error inside three deviations, worst", "share", True
    ),
    "estimate.nees": MetricKind(
        "squared error of the estimate by its covariance, mean; 1 expected"
    ),
    "estimate.doubted": MetricKind("ticks with a status of the estimator", "share"),
    "time.median": MetricKind("time of one tick in C, median", "time"),
    "time.p99": MetricKind("time of one tick in C, 99th percentile", "time"),
    "time.max": MetricKind("time of one tick in C, longest", "time"),
    "time.preparation": MetricKind("preparation of one tick in C, 99th percentile", "time"),
    "time.feedback": MetricKind("feedback of one tick in C, 99th percentile", "time"),
    "time.share": MetricKind("time of one tick in C, 99th percentile, of the period", "share"),
    "time.late": MetricKind("ticks that took longer than the period", "share"),
    "outer.safe_output": MetricKind("ticks of the outer law with a safe output", "share"),
    "outer.longest_failure": MetricKind(
        "longest run of the outer law's ticks with a safe output", unit="ticks"
    ),
    "outer.time": MetricKind("time of one tick of the outer law in C, 99th percentile", "time"),
    "outer.share": MetricKind(
        "time of one tick of the outer law, 99th percentile, of its period", "share"
    ),
}
"""All names that a criterion may have; those of tracking also with a scope, `name:scope`."""

UNITS: dict[Quantity, str] = {"length": "m", "time": "s"}


def named(
    values: Mapping[str, float | None], unit: str | None = None, note: str = ""
) -> Iterator[Metric]:
    """Yield metrics by name, in the units of their kinds; what is None is left out.

    Args:
        values: by name.
        unit: where it is not that of the kind.
        note: of all of them.
    """
    for name, value in values.items():
        if value is not None:
            kind = METRICS[base_name(name)]
            own = UNITS.get(kind.quantity, kind.unit)
            yield Metric(name, float(value), own if unit is None else unit, note)


def base_name(name: str) -> str:
    """Return the name of a metric without its scope: `tracking.rms` of `tracking.rms:trunk`."""
    return name.partition(":")[0]


def unit_scale(model: mujoco.MjModel, unit: str) -> float:
    """Return what an error of 100 % is in this unit; 0 for a unit without a scale.

    1 rad; the extent of the model (MuJoCo's `stat.extent`), m; the same per second; the model's
    weight, N (mass times extent per s² without gravity), and that times the extent, N m.
    """
    extent = float(model.stat.extent)
    gravity = float(np.linalg.norm(model.opt.gravity)) or extent
    weight = float(np.sum(model.body_mass)) * gravity
    scales = {"rad": 1.0, "m": extent, "N": weight, "N m": weight * extent}
    return scales.get(unit.removesuffix("/s"), 0.0)


PREFIXES = (("", 1.0), ("m", 1e3), ("µ", 1e6), ("n", 1e9))


def prefixed(value: float, unit: str) -> str:
    """Return three digits with the unit at which the number is at least one: 0.0485 s is 48.5 ms.

    Args:
        value: in `unit`.
        unit: m or s.
    """
    if not value or not math.isfinite(value):
        return f"{value:.3g} {unit}" if value else "0"
    rounded = [(float(f"{value * factor:.3g}"), prefix) for prefix, factor in PREFIXES]
    number, prefix = next((each for each in rounded if abs(each[0]) >= 1), rounded[-1])
    return f"{number:.4g} {prefix}{unit}"
