"""Criteria on the metrics of a run, and their verdicts."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mbcasadi.argument_kinds import require_fields
from mbcasadi.errors import ProblemError, UnknownNameError
from mbcasadi.validation.metrics.command_metrics import HEADING, WAY
from mbcasadi.validation.metrics.metric import METRICS, Metric, base_name
from mbcasadi.validation.metrics.plant_metrics import BODY_CONTACT, HEIGHT, JOINT_BEYOND, TILT

OUTER_UNSOLVED = "outer.safe_output"

# A force on the edge of its pyramid is on the cone, up to the rounding of the QP.
ON_THE_CONE = 1e-6

CLOSURE = "closure.share"
LOADS = 4.0
"""Load of a leg in motion, of that at rest: all of the weight of two, twice as much in a step."""

#: Criteria of a run that names none. One on loops, contacts, moving or constant targets, stops or
#: a base that stands applies where the run has some, those on targets not below an outer law. One
#: that applies and cannot be evaluated (NaN) fails. A run to which none applies but those of
#: `SAY_NOTHING` is not judged.
DEFAULTS: dict[str, float] = {
    "torque.excess": 0.0,
    "status.safe_output": 0.0,
    "tracking.rms_share": 0.05,
    "tracking.hold_share": 0.1,
    CLOSURE: 1e-3,
    "contact.slip_share": 0.05,
    "cone.controller": -ON_THE_CONE,
    HEIGHT: 0.6,
    TILT: math.pi / 4,
    BODY_CONTACT: 0.0,
    JOINT_BEYOND: 0.05,  # stops of MuJoCo are soft
    OUTER_UNSOLVED: 0.05,
    WAY: 0.2,
    HEADING: 0.2,
}

OF_TARGETS = ("tracking.rms_share", "tracking.hold_share")
"""Defaults that do not apply below an outer law, which chooses the targets anew in each plan."""

SAY_NOTHING = ("torque.excess", "status.safe_output", CLOSURE)
"""Defaults that say nothing of where the plant moves: a control of zero fulfils them."""


@dataclass(frozen=True)
class Criteria:
    """What a run has to reach.

    Attributes:
        limits: metric → bound, from below for margins and `status.solved`, else from above; the
            names are those of `METRICS`, for tracking also `tracking.rms:trunk` with a task or
            component. `DEFAULTS` where None; {} requires only that the run reaches its end.
        settle: s at the start that metrics of tracking and of plans leave out.

    Raises:
        UnknownNameError: a limit on something that is no metric; the message lists the names.
        ProblemError: a limit that is no number, or a negative `settle`.
    """

    limits: Mapping[str, float] | None = None
    settle: float = 0.0

    def __post_init__(self) -> None:
        require_fields(self)
        for name, limit in (self.limits or {}).items():
            require_metric(name)
            if not isinstance(limit, (int, float)) or math.isnan(limit):
                raise ProblemError(f"criterion {name!r} is {limit!r}; expected a number")
        if not self.settle >= 0:
            raise ProblemError(f"settle is {self.settle} s; expected zero or a positive number")

    @property
    def scopes(self) -> tuple[str, ...]:
        """Components or tasks that limits name, as in `tracking.rms:trunk`."""
        names = [name.split(":", 1)[1] for name in self.limits or {} if ":" in name]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Verdict:
    """One criterion, and whether it is fulfilled.

    Attributes:
        metric: its name.
        limit: bound of the metric.
        at_least: the limit is a lower bound; otherwise an upper one.
        value: of the run.
        passed: whether the criterion is fulfilled; None for `JUDGED`, the one of a run that no
            criterion judges.
    """

    metric: str
    limit: float
    at_least: bool
    value: float
    passed: bool | None


JUDGED = "judged"
"""The criterion that some criterion applies; it stands in a run to which none does."""

SAME_IN_C = "same_in_c"
"""The criterion that the C gives the controls of a run by the Function."""

NO_METRICS = ("finished", JUDGED, SAME_IN_C)
"""Criteria that bound no metric: they are fulfilled, or not."""


def passed(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether all are true: False if one is not, None if one is undecided."""
    answers = tuple(verdicts)
    if False in answers:
        return False
    return None if None in answers else True


def judge(metrics: Sequence[Metric], criteria: Criteria, finished: bool) -> tuple[Verdict, ...]:
    """Return a verdict for each criterion.

    A criterion that is required by name fails where the run has no such metric (NaN does not
    pass). A run that stopped early fails as a whole, by the criterion `finished`. Where no default
    says anything of the run, `JUDGED` is undecided.

    Args:
        metrics: of the run.
        criteria: limits on them.
        finished: whether the run reached its end.
    """
    values = {metric.name: metric.value for metric in metrics}
    verdicts = [Verdict("finished", 1.0, True, float(finished), finished)]
    if criteria.limits is None:
        limits = _applied_defaults(values)
        if not limits.keys() - set(SAY_NOTHING):
            verdicts.append(Verdict(JUDGED, 1.0, True, 0.0, None))
    else:
        limits = dict(criteria.limits)
    return (*verdicts, *_verdicts(values, limits))


def missed_defaults(metrics: Sequence[Metric], criteria: Criteria) -> tuple[Verdict, ...]:
    """Return the defaults that a run misses, and that criteria of its own have taken the place of.

    A default on a metric that is named, or on tracking where a limit on tracking is, counts as
    replaced on purpose.

    Args:
        metrics: of the run.
        criteria: limits on them.
    """
    if criteria.limits is None:
        return ()
    values = {metric.name: metric.value for metric in metrics}
    stated = {base_name(name) for name in criteria.limits}
    if any(name.startswith("tracking.") for name in stated):
        stated |= {*OF_TARGETS}
    left = {name: x for name, x in _applied_defaults(values).items() if name not in stated}
    return tuple(verdict for verdict in _verdicts(values, left) if not verdict.passed)


def _applied_defaults(values: Mapping[str, float]) -> dict[str, float]:
    left_out = OF_TARGETS if OUTER_UNSOLVED in values else ()
    applied = values.keys() - {*left_out}
    limits = {name: limit for name, limit in DEFAULTS.items() if name in applied}
    if CLOSURE in limits:  # loops may be as soft as their model has them
        soft = LOADS * values.get("closure.static_share", 0.0)
        limits[CLOSURE] = max(limits[CLOSURE], soft)
    return limits


def _verdicts(values: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[Verdict]:
    for name, limit in limits.items():
        value, at_least = values.get(name, math.nan), METRICS[base_name(name)].larger_is_better
        fulfilled = value >= limit if at_least else value <= limit
        yield Verdict(name, limit, at_least, value, bool(fulfilled))


def require_metric(name: str) -> None:
    """Raise `UnknownNameError` unless a criterion may have this name."""
    base, colon, _ = name.partition(":")
    if base not in METRICS or (colon and not base.startswith("tracking.")):
        raise UnknownNameError(
            f"unknown criterion {name!r}; there are: {', '.join(METRICS)}; those of tracking may "
            "name a task or a component: 'tracking.rms:trunk'"
        )
