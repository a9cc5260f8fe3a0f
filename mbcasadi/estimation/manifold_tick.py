"""One tick of the filter of a mechanism: guard, prediction, corrections, return to the manifold."""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description.status import Flag
from mbcasadi.dynamics.slopes import scalar_if_small
from mbcasadi.errors import ProblemError
from mbcasadi.estimation.covariance import mirrored, shares_within
from mbcasadi.estimation.estimator import ADRIFT, DOUBTED
from mbcasadi.estimation.manifold_correction import NO_LIMIT, SHARED, Corrections
from mbcasadi.estimation.manifold_guard import sound_inputs
from mbcasadi.estimation.manifold_process import Layout, Process
from mbcasadi.estimation.manifold_reading import Reading
from mbcasadi.estimation.manifold_return import returned_fun
from mbcasadi.estimation.measured import FilterOptions
from mbcasadi.estimation.memory import Memory, is_sound
from mbcasadi.system import System

Array = NDArray[np.float64]

LOST = 0.3
"""s for which half of the sensors have to be rejected until the filter starts anew."""

RECOVERY = 4
"""Ticks of rejected samples that one sample which fits makes up for: a filter that is lost, and so
wide that a few fit by chance, goes on being doubted."""

PATIENCE = 50
"""Ticks without a sample of a sensor that weigh as much as one in which it is rejected."""

ACQUISITION = 0.1
"""s from a start in which samples that do not fit are used all the same."""

LARGEST_DEVIATION = 1e2
"""Bound of standard deviations of positions and speeds, in the sizes of coordinates (per second);
those of other states are bounded by as many of their first ones."""

FASTEST = 1e4
"""Sizes of coordinates per second: a faster estimate is started anew."""


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
        likelihood: whether the log-density of the samples is an output.
    """

    system: System
    process: Process
    reading: Reading
    options: FilterOptions
    period: float
    first: tuple[Array, Array]
    least: Array
    likelihood: bool = False

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
    def corrections(self) -> Corrections:
        """Functions of the corrections."""
        return Corrections(self.process, self.reading, self.options, self.likelihood)

    @cached_property
    def back(self) -> ca.Function:
        """See `returned_fun`."""
        return returned_fun(self.process.system)

    def memory_at(self, q: Array) -> ca.DM:
        """Return the memory (nz,) of a filter that starts at rest at a pose (nq,).

        Raises:
            ProblemError: a pose that is not near the manifold.
        """
        layout = self.layout
        pose = ca.vertcat(ca.DM(q), ca.DM(self.system.parameters.values))
        q_next, v, T, closed = self.back(pose, ca.DM.zeros(layout.nv), ca.DM.zeros(2 * layout.nv))
        if not closed:
            raise ProblemError(
                f"q0 = {q} is far from any pose of '{self.system.name}': loops do not close, or a "
                "rotation is none; expected a pose, as of System.assemble"
            )
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
        own = (self.system, self.process, self.reading, self.memory)
        at = sound_inputs(*own, self.period, z0, s)
        predicted = self.process.predict(*(at[key] for key in ("q", "v", "x", "drive", "L", "dt")))
        after = self._corrected(at, predicted)
        outputs = self._outputs(at, after, z0)
        tick = ca.Function(name, [*s.values()], [*outputs.values()], [*s], [*outputs])
        return scalar_if_small(tick)

    def _corrected(
        self, at: dict[str, ca.MX], predicted: tuple[ca.MX, ca.MX, ca.MX]
    ) -> dict[str, ca.MX]:
        """Return the state after all corrections, back on the manifold."""
        q, v, W = predicted
        layout, x, u = self.layout, at["x"], at["drive"]
        doubt = at["doubt"] * at["read"]  # of sensors that say something now
        L = self.corrections.spread(W=W, doubt=doubt, dt=at["dt"])["L"]
        step, read = ca.MX.zeros(layout.n), at["read"]
        limits = ca.if_else(at["acquiring"] > 0, NO_LIMIT, ca.MX(self.corrections.limits))
        here, turn = (q, v, x), ca.MX.eye(layout.n)
        distances = used = read
        likelihood = ca.MX(0)
        for iteration in range(self.options.iterations):
            h, H = self.reading.function(*here, u)
            innovation = self.corrections.innovation(at["y"], read, h)
            e = innovation + H @ turn @ step if iteration else innovation
            out = self.corrections.correction(
                L=L, e=e, H=H @ turn, read=read, limits=limits, dt=at["dt"]
            )
            step = out["step"]
            back = self.back(q, v, step[: 2 * layout.nv])
            turn = ca.diagcat(back[2], ca.MX.eye(layout.extra))
            extra = ca.fmax(x + step[2 * layout.nv :], ca.MX(ca.DM(self.least)))
            here = (self.process.placed(back[0], extra), back[1], extra)
            if not iteration:
                distances, used = out["distances"], out["used"]
                likelihood = out.get("likelihood", likelihood)
            read, limits = used, ca.MX.ones(len(self.reading.sensors)) * NO_LIMIT
        return {
            "q": here[0],
            "v": here[1],
            "x": here[2],
            "L": turn @ out["L"],
            "closed": back[3],
            "distances": distances,
            "used": used,
            "read": at["read"],
            "likelihood": likelihood,
        }

    def _outputs(
        self, at: dict[str, ca.MX], after: dict[str, ca.MX], z0: ca.DM
    ) -> dict[str, ca.MX]:
        """Return the outputs of a tick, those of a new start where its numbers are bad."""
        kept = ("drive", "doubt", "missing", "acquiring", "good", "sound", "dt")
        given = {key: at[key] for key in kept} | after
        s = {key: ca.SX.sym(key, x.shape) for key, x in given.items()}
        layout = self.layout
        z_next, status, doubt = self._remembered(s)
        rejected = ca.logic_and(s["read"], ca.logic_not(s["used"]))
        fastest = ca.norm_inf(s["v"] / ca.DM(self.process.system.scales.coordinates))
        residual = ca.fmin(s["distances"], NO_LIMIT)
        fine = ca.logic_and(is_sound(z_next), fastest <= FASTEST)
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
        if self.likelihood:
            outputs["likelihood"] = ca.fmax(ca.fmin(s["likelihood"], NO_LIMIT), -NO_LIMIT)
        dense = [ca.densify(x) for x in outputs.values()]
        end = ca.Function("end", [*s.values()], dense, [*s], [*outputs], SHARED)
        found = end(**given)
        return {key: found[key] for key in outputs}

    def _remembered(self, s: dict[str, ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return the next memory, the status, and for how long each sensor was rejected."""
        layout = self.layout
        rejected = ca.logic_and(s["read"], ca.logic_not(s["used"]))
        calm = ca.fmax(s["doubt"] - s["dt"] / PATIENCE, 0)
        doubt = ca.if_else(rejected, ca.fmin(s["doubt"] + s["dt"], 1), calm)
        trusted = ca.fmax(s["doubt"] - RECOVERY * s["dt"], 0)
        doubt = ca.if_else(s["used"], trusted, doubt)
        fits = ca.sum1(ca.logic_and(s["read"], s["distances"] ** 2 <= self.corrections.limits))
        fits = ca.logic_and(fits > 0, fits >= ca.sum1(s["read"]))
        acquiring = ca.if_else(fits, 0, ca.fmax(s["acquiring"] - s["dt"], 0))
        missing = ca.fmin(s["missing"] + s["dt"], 1e3)
        missing = ca.if_else(ca.sum1(s["used"]) > 0, 0, missing)
        within = shares_within(ca.sum2(ca.densify(s["L"]) ** 2), self._largest)
        L = s["L"] * ca.repmat(within, 1, layout.n)
        state = {"q": s["q"][: layout.moving], "v": s["v"], "x": s["x"], "L": ca.vec(L)}
        z_next = self.memory.join(
            state
            | {"drive": s["drive"], "doubt": doubt, "missing": missing, "acquiring": acquiring}
        )
        status = ca.if_else(missing > ADRIFT, 1, 0)
        seeking = ca.logic_and(acquiring > 0, ca.sum1(s["read"]) > 0)
        doubted = ca.logic_or(ca.mmax(doubt) > DOUBTED, seeking)
        status = ca.if_else(doubted, 2, status)
        return z_next, ca.if_else(s["good"], status, 3), doubt

    @property
    def _largest(self) -> Array:
        """(n,) bounds of standard deviations."""
        size = LARGEST_DEVIATION * self.process.system.scales.coordinates
        return np.concatenate([size, size, LARGEST_DEVIATION * self.first[0]])
