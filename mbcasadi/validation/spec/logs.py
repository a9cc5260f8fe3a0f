"""The estimator of a controller's file, run through a log of the robot."""

from pathlib import Path

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ProblemError
from mbcasadi.estimation import estimate_log, logged_inputs, read_log
from mbcasadi.progress import Progress
from mbcasadi.validation.report.estimated_log import EstimatedLog
from mbcasadi.validation.spec.common import Spec
from mbcasadi.validation.spec.kinds import build_experiment


@checked
def estimate_log_of_spec(
    spec: Spec, model: str | Path, log: str | Path, *, progress: Progress | None = None
) -> EstimatedLog:
    """Run the estimator of a file through a log.

    Args:
        spec: with a table [estimation], whose `log` says which channel is which measurement.
        model: MJCF or URDF file.
        log: `.csv`, `.npz` or `.mcap`, as `read_log` takes it.
        progress: called with what is being done and a share from 0 to 1.

    Raises:
        ProblemError: a file without [estimation], or no log; see `read_log`, `logged_inputs`.
        UnknownNameError: a measurement without a channel.
        MbcasadiError: the model or the spec; see `build_experiment`.
    """
    if spec.estimation is None:
        raise ProblemError(
            "the file has no table [estimation]; expected one that says what measures the robot"
        )
    report, table = progress or (lambda _text, _share: None), spec.estimation.log
    report("reading the log", 0.0)
    recorded = read_log(log, time=table.time, unit=table.unit)
    report("building the estimator", 0.1)
    sensors = build_experiment(spec, model).sensors
    assert sensors is not None  # of a file with the table
    estimator = sensors.estimator
    logged = logged_inputs(estimator, recorded, channels=table.channels, period=table.period)
    report(f"estimating {logged.t.size} ticks", 0.3)
    return EstimatedLog(estimator, logged, estimate_log(estimator, logged))
