"""State of any mechanism on its constraint manifold, from any of its sensors.

An extended Kalman filter, by choice iterated, whose error is that of `System.difference` and whose
covariance has the tangent space of the manifold as its range: loops, rows that repeat, rows of
velocities and poses where the rank changes are the usual case.
"""

from collections.abc import Sequence

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.control.regulators.operating_point import require_no_activations
from mbcasadi.description import Signal
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.estimator import LIKELIHOOD, Estimator
from mbcasadi.estimation.late_samples import with_late_samples
from mbcasadi.estimation.manifold_process import Layout, Process
from mbcasadi.estimation.manifold_reading import Reading, require_measured
from mbcasadi.estimation.manifold_tick import ManifoldTick
from mbcasadi.estimation.manifold_words import unobservable_modes
from mbcasadi.estimation.measured import (
    FilterOptions,
    Measured,
    UnknownForce,
    UnknownParameter,
)
from mbcasadi.shapes import column, real_array, require_identifier, require_name, require_positive
from mbcasadi.system import System
from mbcasadi.system.coordinates import (
    controls,
    coordinates,
    generalised_forces,
    pose_of,
    rate_names,
    rates,
    start_pose,
    unitless_signal,
)

Array = NDArray[np.float64]

LEAST_SHARE = 1e-3
"""An estimated parameter stays above its least value by this share of the model's own."""


@checked
def manifold_filter(
    system: System,
    sensors: Sequence[Measured],
    *,
    force_noise: ArrayLike,
    disturbances: Sequence[UnknownForce] = (),
    parameters: Sequence[UnknownParameter] = (),
    options: FilterOptions | None = None,
    q0: ArrayLike | None = None,
    period: float = 1e-3,
    likelihood: bool = False,
    name: str = "manifold_filter",
) -> Estimator:
    """Return an extended Kalman filter on the constraint manifold of a mechanism.

    Its Function is (y, valid, u, [p], [age], dt, z) → (q, v, [states], z_next, covariance, status,
    flags, residual):

    - `y`: samples of the sensors, one below the other. A sample that is NaN counts as not valid.
    - `valid`: for each sensor, above one half for valid.
    - `u`: controls as they were applied during dt; `f`, generalised forces, without actuators.
    - `p`: of a system with parameters; entries that are estimated have no effect.
    - `age`: s, of the samples of sensors that may be late; see `late_samples`.
    - `states`: disturbing forces, N or N m, then estimated parameters in their units, where there
      are some.
    - `covariance`: (n, n) of the errors of q and v, in coordinates of `System.difference`, and of
      the states. Its range is the tangent space of the manifold.
    - `status`: 0 estimated, 1 for half a second no sample was used, 2 a sensor has contradicted the
      estimate in ticks of 20 ms together, 3 bad input, predicted without it, 4 started anew.
    - `flags`: the bit GATED where a valid sample was rejected, OVERDUE where its age was refused.
    - `residual`: distance of each sensor's sample from what was expected, in standard deviations.

    The motion over a tick is that of `manifold_process`. While a sensor is rejected for long, the
    deviations of q and v grow until it fits: a jump of the mechanism is followed within a tenth of
    a second, a sensor that others contradict stays rejected.

    Args:
        system: the mechanism. Its constraints do not depend on time and have no mask.
        sensors: of the model, of any kind that follows from the motion, and encoders.
        force_noise: density of the white force on the coordinates, N/√Hz or N m/√Hz; (nv,) or one
            number. It covers what the model does not know: friction, pushes.
        disturbances: forces that are estimated.
        parameters: of the system that are estimated.
        options: of the start and of corrections; `FilterOptions()` by default.
        q0: (nq,) pose at the start; the first key frame or the initial pose by default.
        period: s, the usual dt.
        likelihood: whether there is a last output, the logarithm of the samples' density; a sample
            that is rejected counts as if it were at its gate. `fit_noise` needs it.
        name: a C identifier.

    Raises:
        ProblemError: a q0 that is no pose; nothing is measured, or what does not follow from the
            motion; a negative force noise, or none at all; activation states, a mask, or
            constraints in time; parameters that move bodies as states; a state that is named twice.
        UnknownNameError: no such sensor, joint, coordinate or parameter.
        ShapeError: q0 or force_noise has a wrong shape, or NaN.
    """
    require_identifier("name", name)
    require_positive(period=period)
    _require_plain(system)
    model = system.carried
    require_measured(model, sensors)
    layout = _layout(system, disturbances, parameters)
    noise = _force_noise(system, force_noise)
    walks = [each.walk for each in disturbances] + [each.density for each in parameters]
    process = Process(model, layout, noise, np.array(walks))
    reading = Reading(process, tuple(sensors))
    known, least = system.parameters.values, system.parameters.least
    places, zeros = list(layout.unknown), np.zeros(len(disturbances))
    deviations = [each.deviation for each in disturbances] + [u.deviation for u in parameters]
    above = least[places] + LEAST_SHARE * np.abs(known[places])
    tick = ManifoldTick(
        system=system,
        process=process,
        reading=reading,
        options=options or FilterOptions(),
        period=period,
        first=(np.array(deviations), np.append(zeros, known[places])),
        least=np.append(zeros - FARTHEST_FORCE, np.maximum(above, -FARTHEST_FORCE)),
        likelihood=likelihood,
    )
    start = pose_of(system, "q0", start_pose(system) if q0 is None else q0)[: layout.moving]
    extra = [f"{each.coordinate}.force" for each in disturbances]
    extra += [each.name for each in parameters]
    names = (*rate_names(system), *(f"{k}.rate" for k in rate_names(system)), *extra)
    estimator = Estimator(
        name=name,
        function=tick.function(name, start),
        inputs=_inputs(tick),
        outputs=_outputs(tick, names),
        sensors=reading.sensors,
        z0=np.array(tick.memory_at(start)).ravel(),
        period=period,
        source=system.name,
        unobservable=unobservable_modes(tick, start, names),
        covered=tuple(range(2 * system.nv)),
        parameters=tuple(map(float, system.parameters.values)),
        y0=_at_rest(tick, start),
    )
    return with_late_samples(estimator, {k: m.longest_delay for k, m in enumerate(sensors)})


def _at_rest(tick: ManifoldTick, q0: Array) -> Array:
    """Return y (ny,) of a mechanism that rests at q0, without controls."""
    now, reading = tick.memory.split(tick.memory_at(q0)), tick.reading.function
    p = ca.DM(tick.system.parameters.values)
    zeros = {n: ca.DM.zeros(reading.size_in(n)) for n in reading.name_in()}
    return np.array(reading(**(zeros | {"q": ca.vertcat(now["q"], p)}))["h"]).ravel()


FARTHEST_FORCE = 1e9
"""Bound of disturbing forces from below, and of parameters without a least value."""


def _require_plain(system: System) -> None:
    """Raise `ProblemError` for what a filter does not know: activations, masks, time."""
    require_no_activations(system, "a filter's state")
    if system.mask is not None or system.timed:
        what = "a mask" if system.mask is not None else "constraints that depend on time"
        raise ProblemError(
            f"'{system.name}' has {what}; expected rows that are the same at all times"
        )


def _layout(
    system: System, disturbances: Sequence[UnknownForce], parameters: Sequence[UnknownParameter]
) -> Layout:
    coordinate_names = list(rate_names(system))
    for each in disturbances:
        require_name("coordinate", each.coordinate, coordinate_names)
    entries = list(system.parameters.names)
    for unknown in parameters:
        require_name("parameter", unknown.name, entries)
    chosen = [each.coordinate for each in disturbances] + [each.name for each in parameters]
    if len(set(chosen)) < len(chosen):
        raise ProblemError(f"states {', '.join(chosen)}; expected each name once")
    moving = [e for item in system.parameters.items if item.kind == "mocap" for e in item.entries]
    for unknown in parameters:
        if unknown.name in moving:
            raise ProblemError(
                f"parameter '{unknown.name}' moves bodies; expected one of masses, inertias, "
                "damping, stiffness and the like"
            )
    return Layout(
        nv=system.nv,
        moving=system.nq,
        disturbed=tuple(coordinate_names.index(each.coordinate) for each in disturbances),
        unknown=tuple(entries.index(each.name) for each in parameters),
    )


def _force_noise(system: System, force_noise: ArrayLike) -> Array:
    """Return (nv,) densities."""
    noise = real_array("force_noise", force_noise)
    noise = np.broadcast_to(noise, system.nv) if noise.ndim == 0 else noise
    noise = column("force_noise", noise, system.nv)
    if np.any(noise < 0) or not np.any(noise > 0):
        raise ProblemError(
            f"force_noise = {noise}; expected densities of at least 0, one of them positive"
        )
    return noise


def _inputs(tick: ManifoldTick) -> tuple[Signal, ...]:
    system, reading = tick.system, tick.reading
    sensors = reading.sensors
    names = [
        s.name if len(s.rows) == 1 else f"{s.name}.{k}" for s in sensors for k in range(len(s.rows))
    ]
    drive = controls(system) if system.nu else generalised_forces(system)
    signals = [
        Signal("y", tuple(names), reading.units),
        unitless_signal("valid", tuple(sensor.name for sensor in sensors)),
        Signal(tick.process.input[0], drive.components, drive.units),
    ]
    signals += [system.parameters.signal] if len(system.parameters) else []
    signals.append(Signal("dt", ("dt",), ("s",)))
    return (*signals, unitless_signal("z", tick.memory.components))


def _outputs(tick: ManifoldTick, names: Sequence[str]) -> tuple[Signal, ...]:
    system, layout = tick.system, tick.layout
    signals = [coordinates(system), Signal("v", rate_names(system), rates(system).units)]
    if layout.extra:
        forces, known = generalised_forces(system).units, system.parameters.signal.units
        units = [forces[k] for k in layout.disturbed] + [known[k] for k in layout.unknown]
        signals.append(Signal("states", tuple(names[2 * layout.nv :]), tuple(units)))
    signals += [
        unitless_signal("z_next", tick.memory.components),
        unitless_signal("covariance", tuple(f"{a} {b}" for b in names for a in names)),
        unitless_signal("status", ("status",)),
        unitless_signal("flags", ("flags",)),
        unitless_signal("residual", tuple(sensor.name for sensor in tick.reading.sensors)),
    ]
    signals += [LIKELIHOOD] if tick.likelihood else []
    return tuple(signals)
