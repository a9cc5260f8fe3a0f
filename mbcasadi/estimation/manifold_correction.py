"""Corrections of a tick as Functions: one sensor after the other, each through its gate."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from mbcasadi.control.regulators.innovation_gate import wrap_angles
from mbcasadi.estimation.covariance import correction, triangular_root
from mbcasadi.estimation.estimator import DOUBTED
from mbcasadi.estimation.manifold_process import Process
from mbcasadi.estimation.manifold_reading import Reading
from mbcasadi.estimation.measured import FilterOptions

FADING = 0.01
"""s in which deviations of q and v grow by e while the estimate is doubted."""

LONGEST_STEP = 0.3
"""Sizes of coordinates by which a loop is moved in a correction: one that is moved farther may not
close."""

NO_LIMIT = 1e12
"""Bound of a squared distance without a gate, and of distances."""

SHARED = {"cse": True, "allow_duplicate_io_names": True}
"""Options of Functions whose inputs and outputs have the same names."""


@dataclass(frozen=True)
class Corrections:
    """Functions of a tick's corrections.

    Attributes:
        process, reading: motion and sensors of the mechanism.
        options: of the filter.
        likelihood: whether the log-density of the samples is an output.
    """

    process: Process
    reading: Reading
    options: FilterOptions
    likelihood: bool = False

    @cached_property
    def spread(self) -> ca.Function:
        """(W, doubt, dt) → (L), the root of the predicted covariance, wider while doubted."""
        nv, count = self.process.layout.nv, len(self.reading.sensors)
        W = ca.SX.sym("W", self.process.errors.sparsity_out("W"))
        doubt, dt = ca.SX.sym("doubt", count), ca.SX.sym("dt")
        wider = ca.if_else(ca.mmax(doubt) > DOUBTED, ca.exp(dt / FADING), 1)
        L = triangular_root(W)
        L = ca.vertcat(wider * L[: 2 * nv, :], L[2 * nv :, :])
        names = (["W", "doubt", "dt"], ["L"])
        return ca.Function("spread", [W, doubt, dt], [ca.densify(L)], *names, {"cse": True})

    @property
    def limits(self) -> ca.DM:
        """(ns,) largest squared distance of each sensor."""
        from scipy.special import chdtri  # heavy, and needed when a filter is made only

        share, sensors = self.options.false_alarm, self.reading.sensors
        if share is None:
            return ca.DM.ones(len(sensors)) * NO_LIMIT
        return ca.DM([float(chdtri(len(sensor.rows), share)) for sensor in sensors])

    @cached_property
    def innovation(self) -> ca.Function:
        """(y, read, h) → (e): differences of samples that are used, zero for others."""
        ny, count = self.reading.size, len(self.reading.sensors)
        s = [ca.SX.sym(k, n) for k, n in (("y", ny), ("read", count), ("h", ny))]
        y, read, h = s
        rows = []
        for sensor in self.reading.sensors:
            own = list(sensor.rows)
            sample = ca.if_else(read[sensor.valid], y[own], h[own])
            if self.reading.is_rotation(sensor):  # q and -q are one rotation; lengths tell nothing
                along = ca.dot(sample, h[own])
                sample = ca.if_else(along < 0, -sample, sample)
                sample = sample + (1 - ca.fabs(along)) * h[own]
            rows.append(sample - h[own])
        e = wrap_angles(ca.vertcat(*rows), self.reading.turning)
        return ca.Function("innovation", s, [e], {"cse": True})

    @cached_property
    def correction(self) -> ca.Function:
        """(L, e, H, read, limits, dt) → (step, L, distances, used, [likelihood]): all sensors."""
        layout, sensors, size = self.process.layout, self.reading.sensors, self.reading.size
        sizes = {"L": (layout.n, layout.n), "e": (size, 1), "H": (size, layout.n)}
        count = (len(sensors), 1)
        sizes |= {"read": count, "limits": count, "dt": (1, 1)}
        s = {key: ca.SX.sym(key, *shape) for key, shape in sizes.items()}
        if self.options.iterations == 1:
            s["H"] = ca.SX.sym("H", self.reading.function.sparsity_out("H"))
        L, step = s["L"], ca.SX(layout.n, 1)
        distances, used, likelihood = list[ca.SX](), list[ca.SX](), ca.SX(0)
        for k, sensor in enumerate(sensors):
            rows, noise = list(sensor.rows), ca.SX(sensor.noise)
            H, e = s["H"][rows, :], s["e"][rows] - s["H"][rows, :] @ step
            noise = noise / ca.sqrt(s["dt"]) if sensor.density else noise
            accept = (s["read"][k], s["limits"][k])
            one = correction(L, H, e, ca.repmat(noise, len(rows)), accept)
            L, step = one.L, step + one.step
            distances.append(one.distance)
            used.append(one.used)
            likelihood += one.likelihood
        if self.process.system.nc:
            farthest = ca.norm_inf(
                step[: layout.nv] / ca.DM(self.process.system.scales.coordinates)
            )
            share = ca.fmin(1, LONGEST_STEP / ca.fmax(farthest, LONGEST_STEP / 2))
            L = ca.if_else(share < 1, s["L"], L)
            step = share * step
        outputs = [step, L, ca.vertcat(*distances), ca.vertcat(*used)]
        dense = [ca.densify(x) for x in outputs]
        names = ([*s], ["step", "L", "distances", "used"])
        if self.likelihood:
            dense, names = [*dense, likelihood], (names[0], [*names[1], "likelihood"])
        return ca.Function("correction", [*s.values()], dense, *names, SHARED)
