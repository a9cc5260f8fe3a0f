"""A control law in the loop: evaluated once each period, its output constant until the next."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import require_fields
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController, ticks_of_last_command
from mbcasadi.description.safe_command import safe_command
from mbcasadi.errors import ProblemError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import column
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.system import System

KNOWN_INPUTS = ("q", "v", "act", "ref", "mask", "z", "t")


@readable_fields
@dataclass(frozen=True)
class SampledLaw:
    """A control law in Python.

    Attributes:
        law: (t, q, v) → u (nu,).
        period: sample time, s.
    """

    law: Callable[[float, Array, Array], ArrayLike]
    period: float

    def __post_init__(self) -> None:
        require_fields(self)


Signal = Callable[[float], ArrayLike]


@readable_fields
@dataclass(frozen=True)
class ControlLoop:
    """A controller with the signals that it follows.

    Attributes:
        controller: a controller of `mbcasadi.control`, a `description.Controller`, or a
            `SampledLaw`.
        reference: t → reference of the controller.
        mask: t → mask of the controller, ones by default.
    """

    controller: "Controller | HasController | SampledLaw"
    reference: Signal | None = None
    mask: Signal | None = None

    def __post_init__(self) -> None:
        require_fields(self)


AnyController = Controller | HasController | SampledLaw | ControlLoop


class SampledController:
    """A controller and its state: `control` gives the input of the next period."""

    def __init__(self, controller: AnyController, system: System) -> None:
        """Check that a controller fits a mechanism.

        Raises:
            ProblemError: it is no controller, its period is not above zero, or it was made for
                another system.
        """
        loop = controller if isinstance(controller, ControlLoop) else ControlLoop(controller)
        data = loop.controller
        data = data.controller if isinstance(data, HasController) else data
        if not isinstance(data, Controller | SampledLaw):
            raise ProblemError(
                f"cannot simulate a {type(data).__name__} as controller; expected a controller of "
                "mbcasadi.control, a description.Controller, a simulation.SampledLaw, or one of "
                "these in a simulation.ControlLoop"
            )
        if not (np.isfinite(data.period) and data.period > 0):
            raise ProblemError(f"controller has the period {data.period} s; expected one above 0")
        self.period = float(data.period)
        self._nu = system.nu
        signals = {"ref": loop.reference, "mask": loop.mask}
        self._signals = {name: signal for name, signal in signals.items() if signal is not None}
        self._law: SampledLaw | _ControllerFunction
        if isinstance(data, Controller):
            _require_fit(data, system, loop.reference)
            self._law = _ControllerFunction(data)
        else:
            self._law = data

    def control(self, t: float, q: Array, v: Array, act: Array) -> Array:
        """Return the control (nu,) from a measurement, and advance the law's state.

        Args:
            t: s.
            q, v, act: (nq,), (nv,), (na,) state of the mechanism.
        """
        if isinstance(self._law, SampledLaw):
            return column("u of the controller", self._law.law(t, q, v), self._nu)
        signals = {name: np.asarray(at(t), dtype=float) for name, at in self._signals.items()}
        return self._law({"q": q, "v": v, "act": act, "t": np.array([t])} | signals)


class _ControllerFunction:
    """The Function of a `Controller`, with its state z."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._last, self._age = safe_command(controller), 0
        self._function = BufferedFunction(controller.function)
        f = controller.function
        self._names_in, self._names_out = f.name_in(), f.name_out()
        self._sizes = {name: f.numel_in(name) for name in self._names_in}
        self._z = np.array(controller.z0, dtype=float).ravel()

    def __call__(self, inputs: dict[str, Array]) -> Array:
        default = {"z": self._z, "mask": np.ones(self._sizes.get("mask", 0)), "ref": np.zeros(0)}
        values = default | inputs
        arguments = [column(name, values[name], self._sizes[name]) for name in self._names_in]
        outputs = dict(zip(self._names_out, self._function(*arguments), strict=True))
        if not np.isfinite([*outputs["u"], *outputs.get("status", [])]).all():
            return self._broken()
        self._z = outputs.get("z_next", self._z)
        self._last, self._age = outputs["u"], 0
        return outputs["u"]

    def _broken(self) -> Array:
        """Return the safe output after an arithmetic breakdown, as the generated C does."""
        controller, z0 = self._controller, np.array(self._controller.z0, dtype=float).ravel()
        emergency, z, self._z = controller.emergency, self._z, z0
        self._age += 1
        if emergency is None:
            young = self._age <= ticks_of_last_command(controller.period)
            return self._last if young else safe_command(controller)
        held = slice(emergency.first, emergency.first + emergency.function.numel_in(0))
        u, self._z[held] = (np.asarray(x).ravel() for x in emergency.function(z[held], 1))
        return np.asarray(u)


def _require_fit(controller: Controller, system: System, reference: Signal | None) -> None:
    """Raise `ProblemError` unless a simulation of the system can evaluate the controller."""
    f = controller.function
    unknown = [name for name in f.name_in() if name not in KNOWN_INPUTS]
    if unknown or "u" not in f.name_out():
        raise ProblemError(
            f"controller {controller.name!r} maps {f.name_in()} to {f.name_out()}; expected inputs "
            f"among {', '.join(KNOWN_INPUTS)}, and the output u"
        )
    sizes = {"q": system.nq, "v": system.nv, "act": system.na}
    wrong = [n for n, size in sizes.items() if n in f.name_in() and f.numel_in(n) != size]
    if wrong or f.numel_out("u") != system.nu:
        raise ProblemError(
            f"controller {controller.name!r} does not fit '{system.name}': it was made for other "
            f"sizes of {', '.join(wrong) or 'u'}"
        )
    if "ref" in f.name_in() and f.numel_in("ref") and reference is None:
        raise ProblemError(
            f"controller {controller.name!r} follows a reference of size {f.numel_in('ref')}; "
            "give controller=simulation.ControlLoop(controller, reference=...), a function of time"
        )
