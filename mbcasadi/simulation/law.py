"""A control law in the loop: asked once each period, its answer held."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.simulation.call import Array, Call
from mbcasadi.system import System

KNOWN_INPUTS = ("q", "v", "act", "ref", "mask", "z", "t")


@dataclass(frozen=True)
class SampledLaw:
    """A control law in Python.

    Attributes:
        law: (t, q, v) → u (nu,).
        period: sample time, s.
    """

    law: Callable[[float, Array, Array], ArrayLike]
    period: float


Signal = Callable[[float], ArrayLike]
AnyController = Controller | HasController | SampledLaw


class Held:
    """A law and its state: `tick` gives the control that is held over the next period."""

    def __init__(
        self,
        controller: AnyController,
        system: System,
        reference: Signal | None,
        mask: Signal | None,
    ) -> None:
        data = controller.controller if isinstance(controller, HasController) else controller
        if not isinstance(data, Controller | SampledLaw):
            raise ProblemError(
                f"cannot simulate a {type(data).__name__} as controller; expected a controller of "
                "mbcasadi.control, a description.Controller, or a simulation.SampledLaw"
            )
        if not (np.isfinite(data.period) and data.period > 0):
            raise ProblemError(f"controller has the period {data.period} s; expected one above 0")
        self.period = float(data.period)
        self._nu = system.nu
        self._signals = {"ref": reference, "mask": mask}
        self._law = _function(data, system, reference) if isinstance(data, Controller) else data

    def tick(self, t: float, q: Array, v: Array, act: Array) -> Array:
        """Return the control (nu,) from a measurement, and advance the law's state."""
        if isinstance(self._law, SampledLaw):
            return column("u of the controller", np.asarray(self._law.law(t, q, v)), self._nu)
        given = {"q": q, "v": v, "act": act, "t": np.array([t])}
        signals = {name: signal for name, signal in self._signals.items() if signal is not None}
        return self._law(given | {n: np.asarray(at(t), dtype=float) for n, at in signals.items()})


class _Stateful:
    """The Function of a `Controller`, with its state z."""

    def __init__(self, controller: Controller) -> None:
        self._function = Call(controller.function)
        f = controller.function
        self._names_in, self._names_out = f.name_in(), f.name_out()
        self._sizes = {name: f.numel_in(name) for name in self._names_in}
        self._z = np.array(controller.z0, dtype=float).ravel()

    def __call__(self, given: dict[str, Array]) -> Array:
        default = {"z": self._z, "mask": np.ones(self._sizes.get("mask", 0)), "ref": np.zeros(0)}
        values = default | given
        arguments = [column(name, values[name], self._sizes[name]) for name in self._names_in]
        answer = dict(zip(self._names_out, self._function(*arguments), strict=True))
        self._z = answer.get("z_next", self._z)
        return answer["u"]


def _function(controller: Controller, system: System, reference: Signal | None) -> _Stateful:
    f = controller.function
    unknown = [name for name in f.name_in() if name not in KNOWN_INPUTS]
    if unknown or "u" not in f.name_out():
        raise ProblemError(
            f"controller {controller.name!r} maps {f.name_in()} to {f.name_out()}; a simulation "
            f"knows the inputs {', '.join(KNOWN_INPUTS)} and needs the output u"
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
            "give reference=, a function of time"
        )
    return _Stateful(controller)
