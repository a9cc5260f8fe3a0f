"""One tick of the filter of a mechanism: guard, prediction, corrections, return to the manifold."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.control.regulators.innovation_gate import wrap_angles
from mbcasadi.description.status import Flag
from mbcasadi.dynamics.slopes import scalar_if_small
from mbcasadi.estimation.covariance import mirrored
from mbcasadi.estimation.manifold_process import Layout, Process
from mbcasadi.estimation.manifold_reading import Reading
from mbcasadi.estimation.manifold_return import returned_fun
from mbcasadi.estimation.measured import FilterOptions
from mbcasadi.estimation.memory import Memory
from mbcasadi.estimation.square_root import bounded_root, correction, triangular_root
from mbcasadi.qp.input_guard import MASK_ON, quaternion_validity
from mbcasadi.system import System, evaluate
from mbcasadi.system.closing import LARGEST_GAP, worst_gap
from mbcasadi.system.coordinates import quaternion_places
from mbcasadi.system.parameter_inputs import is_physical

Array = NDArray[np.float64]

DOUBTED = 0.02
"""s for which a sensor has to be rejected until the estimate is doubted."""

FADING = 0.01
"""s in which deviations of q and v grow by e while the estimate is doubted."""

LOST = 0.3
"""s for which half of the sensors have to be rejected until the filter starts anew."""

ACQUISITION = 0.1
"""s from a start in which samples that do not fit are used all the same."""

ADRIFT = 0.5
"""s without a sample that was used from which the estimate drifts."""

LONGEST = 0.1
"""s, the largest dt of a tick."""

LARGEST_DEVIATION = 1e2
"""Bound of standard deviations of positions and speeds, in the sizes of coordinates (per second);
those of other states are bounded by as many of their first ones."""

FASTEST = 1e4
"""Sizes of coordinates per second: a faster estimate is started anew."""

LARGEST_MEMORY = 1e12
"""Sum of the absolute entries of a memory that is sound."""

LARGEST_SAMPLE = 1e9
"""A sample or a control with a larger entry is bad input."""

LONGEST_STEP = 0.3
"""Sizes of coordinates by which a loop is moved in a correction: one that is moved farther may not
close."""

SHARED = {"cse": True, "allow_duplicate_io_names": True}
"""Options of Functions whose inputs and outputs have the same names."""


@dataclass(frozen=True)
class ManifoldTick:
    """The tick of a filter of a mechanism; see `manifold_filter`.

    Attributes:
        system: the mechanism, its parameters as an input.
        process, reading: its motion and its sensors.
        options: of the start and of corrections.
        period: s, the usual dt.
        first: deviations (nx,) and values (nx,) of the states beside q and v at the start.
        least: (nx,) bounds of these states from below.
    """

    system: System
    process: Process
    reading: Reading
    options: FilterOptions
    period: float
    first: tuple[Array, Array]
    least: Array

    @property
    def layout(self) -> Layout:
        """Of the errors."""
        return self.process.layout

    @cached_property
    def memory(self) -> Memory:
        """What is remembered from tick to tick."""
        layout, count = self.layout, len(self.reading.sensors)
        sizes = {"q": layout.moving, "v": layout.nv, "x": layout.extra, "L": layout.n**2}
        sizes |= {"drive": self.process.input[1], "doubt": count, "missing": 1}
        return Memory(sizes | {"acquiring": 1})

    @cached_property
    def deviations(self) -> Array:
        """(n,) of the first estimate, before it is put on the manifold."""
        size = self.process.system.scales.coordinates
        of_state = (self.options.position * size, self.options.speed * size)
        return np.concatenate([*of_state, self.first[0]])

    @cached_property
    def back(self) -> ca.Function:
        """See `returned_fun`."""
        return returned_fun(self.process.system)

    def memory_at(self, q: Array) -> ca.DM:
        """Return the memory (nz,) of a filter that starts at rest at a pose (nq,)."""
        layout = self.layout
        pose = ca.vertcat(ca.DM(q), ca.DM(self.system.parameters.values))
        q_next, v, T, _ = self.back(pose, ca.DM.zeros(layout.nv), ca.DM.zeros(2 * layout.nv))
        L = ca.diagcat(T, ca.DM.eye(layout.extra)) @ ca.diag(ca.DM(self.deviations))
        parts = {"q": q_next[: layout.moving], "v": v, "x": ca.DM(self.first[1]), "L": ca.vec(L)}
        zeros = {key: ca.DM.zeros(self.memory.sizes[key]) for key in ("drive", "doubt", "missing")}
        parts |= zeros | {"acquiring": ca.DM(ACQUISITION)}
        return ca.densify(ca.vertcat(*parts.values()))

    def function(self, name: str, q0: Array) -> ca.Function:
        """Return (y, valid, u, [p], dt, z) → (q, v, [states], z_next, covariance, …, residual)."""
        sizes = {"y": self.reading.size, "valid": len(self.reading.sensors)}
        sizes |= {self.process.input[0]: self.process.input[1]}
        sizes |= {"p": len(self.system.parameters)} if len(self.system.parameters) else {}
        sizes |= {"dt": 1, "z": self.memory.size}
        s = {key: ca.MX.sym(key, n) for key, n in sizes.items()}
        z0 = self.memory_at(q0)
        at = self._guard(s, z0)
        predicted = self.process.predict(*(at[key] for key in ("q", "v", "x", "drive", "L", "dt")))
        after = self._corrected(at, predicted)
        outputs = self._outputs(at, after, z0)
        tick = ca.Function(name, [*s.values()], [*outputs.values()], [*s], [*outputs])
        return scalar_if_small(tick)

    def _guard(self, given: dict[str, ca.MX], z0: ca.DM) -> dict[str, ca.MX]:
        """Return a sound state with inputs that are used, by name; q with the parameters behind."""
        s = {key: ca.SX.sym(key, x.shape) for key, x in given.items()}
        layout, z, dt = self.layout, s["z"], s["dt"]
        sound = ca.sum1(ca.fabs(z)) <= LARGEST_MEMORY
        sound = ca.logic_and(sound, quaternion_validity(z, quaternion_places(self.system)))
        model = self.process.system
        if model.nc:
            pose = ca.vertcat(z[: layout.moving], ca.DM(self.system.parameters.values))
            phi = evaluate(model.constraint, {"q": pose})
            sound = ca.logic_and(sound, worst_gap(phi, ca.DM(model.scales.rows)) <= LARGEST_GAP)
        now = self.memory.split(ca.if_else(sound, z, z0))
        in_time = ca.logic_and(dt > 0, dt <= LONGEST)
        u, known = s[self.process.input[0]], ca.SX(1)
        driven = ca.sum1(ca.fabs(u)) <= LARGEST_SAMPLE
        p = ca.SX(ca.DM(self.system.parameters.values))
        if "p" in s:
            known = is_physical(self.system.parameters, s["p"])
            p = ca.if_else(known, s["p"], p)
        numbers, read = ca.SX(1), list[ca.SX]()
        for sensor in self.reading.sensors:
            on = s["valid"][sensor.valid] > MASK_ON
            number = ca.sum1(ca.fabs(s["y"][list(sensor.rows)])) <= LARGEST_SAMPLE
            numbers = ca.logic_and(numbers, ca.logic_or(number, ca.logic_not(on)))
            read.append(ca.logic_and(on, number))
        good = ca.logic_and(ca.logic_and(in_time, driven), ca.logic_and(known, numbers))
        outputs = {
            "q": self.process.placed(ca.vertcat(now["q"], p), now["x"]),
            "v": now["v"],
            "x": now["x"],
            "L": ca.reshape(now["L"], layout.n, layout.n),
            "drive": ca.if_else(driven, u, now["drive"]),
            "dt": ca.if_else(in_time, dt, self.period),
            "read": ca.vertcat(*read),
            "doubt": now["doubt"],
            "missing": now["missing"],
            "acquiring": now["acquiring"],
            "good": good,
            "sound": sound,
        }
        dense = [ca.densify(x) for x in outputs.values()]
        guard = ca.Function("guard", [*s.values()], dense, [*s], [*outputs], SHARED)
        found = guard(**given)
        return found | {"y": given["y"]}

    def _corrected(
        self, at: dict[str, ca.MX], predicted: tuple[ca.MX, ca.MX, ca.MX]
    ) -> dict[str, ca.MX]:
        """Return the state after all corrections, back on the manifold."""
        q, v, W = predicted
        layout, x, u = self.layout, at["x"], at["drive"]
        L = self._spread(W=W, doubt=at["doubt"], dt=at["dt"])["L"]
        step, read = ca.MX.zeros(layout.n), at["read"]
        limits = ca.if_else(at["acquiring"] > 0, LARGEST_MEMORY, self._limits)
        here, turn = (q, v, x), ca.MX.eye(layout.n)
        distances = used = read
        for iteration in range(self.options.iterations):
            h, H = self.reading.function(*here, u)
            innovation = self._innovation(at["y"], read, h)
            e = innovation + H @ turn @ step if iteration else innovation
            out = self._correction(L=L, e=e, H=H @ turn, read=read, limits=limits, dt=at["dt"])
            step = out["step"]
            back = self.back(q, v, step[: 2 * layout.nv])
            turn = ca.diagcat(back[2], ca.MX.eye(layout.extra))
            extra = ca.fmax(x + step[2 * layout.nv :], ca.MX(ca.DM(self.least)))
            here = (self.process.placed(back[0], extra), back[1], extra)
            if not iteration:
                distances, used = out["distances"], out["used"]
            read, limits = used, ca.DM.ones(len(self.reading.sensors)) * LARGEST_MEMORY
        return {
            "q": here[0],
            "v": here[1],
            "x": here[2],
            "L": turn @ out["L"],
            "closed": back[3],
            "distances": distances,
            "used": used,
            "read": at["read"],
        }

    @cached_property
    def _spread(self) -> ca.Function:
        """(W, doubt, dt) → (L), the root of the predicted covariance, wider while doubted."""
        nv, n, count = self.layout.nv, self.layout.n, len(self.reading.sensors)
        W = ca.SX.sym("W", self.process.errors.sparsity_out("W"))
        doubt, dt = ca.SX.sym("doubt", count), ca.SX.sym("dt")
        wider = ca.if_else(ca.mmax(doubt) > DOUBTED, ca.exp(dt / FADING), 1)
        L = triangular_root(W)
        L = ca.vertcat(wider * L[: 2 * nv, :], L[2 * nv :, :])
        names = (["W", "doubt", "dt"], ["L"])
        return ca.Function("spread", [W, doubt, dt], [ca.densify(L)], *names, {"cse": True})

    @property
    def _limits(self) -> ca.DM:
        """(ns,) largest squared distance of each sensor."""
        from scipy.special import chdtri  # heavy, and needed when a filter is made only

        share, sensors = self.options.false_alarm, self.reading.sensors
        if share is None:
            return ca.DM.ones(len(sensors)) * LARGEST_MEMORY
        return ca.DM([float(chdtri(len(sensor.rows), share)) for sensor in sensors])

    @cached_property
    def _innovation(self) -> ca.Function:
        """(y, read, h) → (e): differences of samples that are used, zero for others."""
        ny, count = self.reading.size, len(self.reading.sensors)
        s = [ca.SX.sym(k, n) for k, n in (("y", ny), ("read", count), ("h", ny))]
        y, read, h = s
        rows = []
        for sensor in self.reading.sensors:
            own = list(sensor.rows)
            sample = ca.if_else(read[sensor.valid], y[own], h[own])
            if sensor.kind.endswith("quat"):  # q and -q are one rotation; lengths tell nothing
                along = ca.dot(sample, h[own])
                sample = ca.if_else(along < 0, -sample, sample)
                sample = sample + (1 - ca.fabs(along)) * h[own]
            rows.append(sample - h[own])
        e = wrap_angles(ca.vertcat(*rows), self.reading.turning)
        return ca.Function("innovation", s, [e], {"cse": True})

    @cached_property
    def _correction(self) -> ca.Function:
        """(L, e, H, read, limits, dt) → (step, L, distances, used): all sensors, one by one."""
        layout, sensors, size = self.layout, self.reading.sensors, self.reading.size
        sizes = {"L": (layout.n, layout.n), "e": (size, 1), "H": (size, layout.n)}
        count = (len(sensors), 1)
        sizes |= {"read": count, "limits": count, "dt": (1, 1)}
        s = {key: ca.SX.sym(key, *shape) for key, shape in sizes.items()}
        if self.options.iterations == 1:
            s["H"] = ca.SX.sym("H", self.reading.function.sparsity_out("H"))
        L, step = s["L"], ca.SX(layout.n, 1)
        distances, used = list[ca.SX](), list[ca.SX]()
        for k, sensor in enumerate(sensors):
            rows, noise = list(sensor.rows), ca.SX(sensor.noise)
            H, e = s["H"][rows, :], s["e"][rows] - s["H"][rows, :] @ step
            noise = noise / ca.sqrt(s["dt"]) if sensor.density else noise
            accept = (s["read"][k], s["limits"][k])
            one = correction(L, H, e, ca.repmat(noise, len(rows)), accept)
            L, step = one.L, step + one.step
            distances.append(one.distance)
            used.append(one.used)
        if self.process.system.nc:
            farthest = ca.norm_inf(step[: layout.nv] / ca.DM(self.process.system.scales.coordinates))
            share = ca.fmin(1, LONGEST_STEP / ca.fmax(farthest, LONGEST_STEP / 2))
            L = ca.if_else(share < 1, s["L"], L)
            step = ca.vertcat(share * step[: layout.nv], (share >= 1) * step[layout.nv :])
        outputs = [step, L, ca.vertcat(*distances), ca.vertcat(*used)]
        dense = [ca.densify(x) for x in outputs]
        names = ([*s], ["step", "L", "distances", "used"])
        return ca.Function("correction", [*s.values()], dense, *names, SHARED)

    def _outputs(
        self, at: dict[str, ca.MX], after: dict[str, ca.MX], z0: ca.DM
    ) -> dict[str, ca.MX]:
        """Return the outputs of a tick, those of a new start where its numbers are bad."""
        kept = ("drive", "doubt", "missing", "acquiring", "good", "sound", "dt")
        given = {key: at[key] for key in kept} | after
        s = {key: ca.SX.sym(key, x.shape) for key, x in given.items()}
        layout = self.layout
        rejected = ca.logic_and(s["read"], ca.logic_not(s["used"]))
        calm = ca.fmax(s["doubt"] - s["dt"], 0)
        doubt = ca.if_else(rejected, ca.fmin(s["doubt"] + s["dt"], 1), calm)
        doubt = ca.if_else(s["used"], 0, doubt)
        fits = ca.sum1(ca.logic_and(s["read"], s["distances"] ** 2 <= self._limits))
        fits = ca.logic_and(fits > 0, fits >= ca.sum1(s["read"]))
        acquiring = ca.if_else(fits, 0, ca.fmax(s["acquiring"] - s["dt"], 0))
        missing = ca.fmin(s["missing"] + s["dt"], 1e3)
        missing = ca.if_else(ca.sum1(s["used"]) > 0, 0, missing)
        L = bounded_root(s["L"], self._largest)
        state = {"q": s["q"][: layout.moving], "v": s["v"], "x": s["x"], "L": ca.vec(L)}
        z_next = self.memory.join(
            state
            | {"drive": s["drive"], "doubt": doubt, "missing": missing, "acquiring": acquiring}
        )
        status = ca.if_else(missing > ADRIFT, 1, 0)
        doubted = ca.logic_or(ca.mmax(doubt) > DOUBTED, acquiring > 0)
        status = ca.if_else(doubted, 2, status)
        status = ca.if_else(s["good"], status, 3)
        fastest = ca.norm_inf(s["v"] / ca.DM(self.process.system.scales.coordinates))
        residual = ca.fmin(s["distances"], LARGEST_MEMORY)
        fine = ca.logic_and(ca.sum1(ca.fabs(z_next)) <= LARGEST_MEMORY, fastest <= FASTEST)
        lost = 2 * ca.sum1(doubt > LOST) >= doubt.numel()
        fine = ca.logic_and(fine, ca.logic_and(s["closed"], ca.logic_not(lost)))
        z_next = ca.if_else(fine, z_next, z0)
        parts = self.memory.split(z_next)
        L = ca.reshape(parts["L"], layout.n, layout.n)
        outputs = {"q": parts["q"], "v": parts["v"]}
        outputs |= {"states": parts["x"]} if layout.extra else {}
        outputs |= {"z_next": z_next, "covariance": mirrored(L @ L.T)}
        outputs["status"] = ca.if_else(ca.logic_and(fine, s["sound"]), status, 4)
        outputs["flags"] = Flag.GATED * (ca.sum1(rejected) > 0)
        outputs["residual"] = ca.if_else(fine, residual, 0)
        dense = [ca.densify(x) for x in outputs.values()]
        end = ca.Function("end", [*s.values()], dense, [*s], [*outputs], SHARED)
        found = end(**given)
        return {key: found[key] for key in outputs}

    @property
    def _largest(self) -> Array:
        """(n,) bounds of standard deviations."""
        size = LARGEST_DEVIATION * self.process.system.scales.coordinates
        return np.concatenate([size, size, LARGEST_DEVIATION * self.first[0]])
