"""A controller that is not one of ours, as data: what the plant says of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller, Signal
from mbcasadi.description.c_names import is_c_name
from mbcasadi.description.controller import UNREPORTED
from mbcasadi.errors import ControllerError, ShapeError
from mbcasadi.plant import Plant
from mbcasadi.shapes import described, real_array
from mbcasadi.validation.closed_loop.runnable import Runnable, RunningLaw

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OtherController(Runnable):
    """A controller that is not ours, on one plant.

    Attributes:
        controller: names, sizes, limits and period.
        given: what the user gave.
        words: what runs, with its article.
        begin: a plant → what is called at each tick of a new run.
    """

    controller: Controller
    given: object
    words: str
    begin: Callable[[Plant], RunningLaw]

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return self.words

    def start(self, plant: Plant) -> RunningLaw:
        """Return what is called at each tick."""
        return self.begin(plant)


@dataclass(frozen=True)
class CheckedTick:
    """Calls a function of the user with what a loop provides.

    Attributes:
        sizes: of its inputs.
        outputs: values by name → all outputs, u among them, checked by `control_of`.
    """

    sizes: Mapping[str, int]
    outputs: Callable[[Mapping[str, Array]], dict[str, Array]]

    def size(self, name: str) -> int:
        """Return the number of elements of an input, 0 where there is no such input."""
        return self.sizes.get(name, 0)

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return all outputs by name."""
        return self.outputs(values)


def sizes_of(plant: Plant) -> dict[str, int]:
    """Return the sizes of what any controller may measure."""
    return {"t": 1, "q": plant.nq, "v": plant.nv, "act": plant.na}


def actuator_names(plant: Plant) -> tuple[str, ...]:
    """Return a name for each actuator; its number where it has none."""
    kind = mujoco.mjtObj.mjOBJ_ACTUATOR
    names = [mujoco.mj_id2name(plant.model, kind, i) for i in range(plant.nu)]
    return tuple(name or str(i) for i, name in enumerate(names))


def describe(
    name: str,
    function: ca.Function,
    plant: Plant,
    period: float,
    reported: tuple[str, ...] = (),
    z0: Array | None = None,
) -> Controller:
    """Return the data of a controller, with the plant's actuators and their ranges.

    Args:
        name: any text.
        function: with names of a closed loop's inputs, and an output `u`.
        plant: has its actuators.
        period: s.
        reported: keys of `UNREPORTED` that it does report.
        z0: its state at the start; zeros where None.
    """
    low, high = plant.ctrl_range.T
    signals = {"u": Signal("u", actuator_names(plant), ("",) * plant.nu)}
    inputs = [_signal(n, function.numel_in(n)) for n in function.name_in()]
    outputs = [signals.get(n) or _signal(n, function.numel_out(n)) for n in function.name_out()]
    state = np.zeros(function.numel_in("z")) if "z" in function.name_in() else np.zeros(0)
    return Controller(
        name=c_name(name),
        function=function,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        u_min=low,
        u_max=high,
        z0=state if z0 is None else z0,
        period=period,
        source=plant.name,
        unreported=tuple(key for key in UNREPORTED if key not in reported),
    )


def _signal(name: str, size: int) -> Signal:
    return Signal(name, tuple(f"{name}{i}" for i in range(size)), ("",) * size)


def c_name(text: str) -> str:
    """Return a text as a C identifier; "controller" where little is left of it."""
    name = re.sub(r"\W+|_+", "_", text, flags=re.ASCII).strip("_")
    return name if is_c_name(name) else "controller"


def control_of(value: object, size: int, t: float, who: str) -> Array:
    """Return what a controller answered as a control (size,).

    Args:
        value: its answer.
        size: number of actuators.
        t: s.
        who: the controller in words, for messages.

    Raises:
        ControllerError: other than `size` finite numbers; the message says when.
    """
    try:
        u = real_array("u", value)
    except ShapeError:
        raise ControllerError(
            f"at t = {t:.6g} s, {who} gave {described(value)}; expected u, ({size},) numbers"
        ) from None
    if u.shape not in {(size,), (size, 1)} and not (size == 1 and u.ndim == 0):
        raise ControllerError(
            f"at t = {t:.6g} s, {who} gave u of shape {u.shape}; expected ({size},), one number "
            "for each actuator"
        )
    u = u.reshape(size)
    if not np.isfinite(u).all():
        raise ControllerError(
            f"at t = {t:.6g} s, {who} gave NaN or infinity: u = {u}; expected finite numbers"
        )
    return u.copy()
