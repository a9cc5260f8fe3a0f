"""A Python callable `(t, q, v) → u` in the loop."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbcasadi.description import Controller
from mbcasadi.errors import ControllerError, MbcasadiError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.validation.closed_loop.controllers.description import (
    c_name,
    control_of,
    describe,
    sizes_of,
)
from mbcasadi.validation.closed_loop.runnable import Runnable, Tick

Array = NDArray[np.float64]
INPUTS = ("t", "q", "v")


class PythonCallable(Runnable):
    """A function of the user, called with copies of t (a float), q (nq,) and v (nv,).

    Attributes:
        controller: names, sizes, limits and period.
        law: the function.
    """

    def __init__(self, law: Callable[..., object], plant: Plant, period: float) -> None:
        _require_arguments(law)
        self.law = law
        name = getattr(law, "__name__", type(law).__name__)
        self._who = f"the function {name!r}"
        sizes = {key: size for key, size in sizes_of(plant).items() if key in INPUTS}
        function = AnswerFunction(name, sizes, plant.nu, self._answer)
        self.controller: Controller = describe(name, function, plant, period)

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "a Python function"

    def start(self, plant: Plant) -> Tick:
        """Return what calls the function."""
        return CheckedTick({n: sizes_of(plant)[n] for n in INPUTS}, plant.nu, self._answer)

    def _answer(self, values: Mapping[str, Array]) -> Array:
        """Return u (nu,).

        Raises:
            ControllerError: the function raised, which is the cause, or gave no control.
        """
        t = float(values["t"][0])
        answer = call_of_user(
            self._who, t, lambda: self.law(t, values["q"].copy(), values["v"].copy())
        )
        return control_of(answer, self.controller.u_min.size, t, self._who)


class CheckedTick:
    """Calls a function of the user with what it takes, and returns its control."""

    def __init__(
        self, sizes: Mapping[str, int], nu: int, answer: Callable[[Mapping[str, Array]], Array]
    ) -> None:
        self._sizes, self._nu, self._answer = dict(sizes), nu, answer

    def size(self, name: str) -> int:
        """Return the number of elements of an input, 0 where there is no such input."""
        return self._sizes.get(name, 0)

    def __call__(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Return `u`."""
        return {"u": self._answer({name: values[name] for name in self._sizes})}


class AnswerFunction(ca.Callback):
    """A function of the user as a named `ca.Function`, without derivatives.

    The closed loop calls the user's function itself; this is what `Controller.function` is.
    """

    def __init__(
        self,
        name: str,
        sizes: Mapping[str, int],
        nu: int,
        answer: Callable[[Mapping[str, Array]], Array],
    ) -> None:
        ca.Callback.__init__(self)
        self._given = (dict(sizes), nu, answer)
        self.construct(c_name(name), {})

    def get_n_in(self) -> int:
        """Return the number of inputs."""
        return len(self._given[0])

    def get_n_out(self) -> int:
        """Return one, u."""
        return 1

    def get_name_in(self, i: int) -> str:
        """Return the name of an input."""
        return list(self._given[0])[i]

    def get_name_out(self, i: int) -> str:  # noqa: ARG002  # CasADi's
        """Return "u"."""
        return "u"

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Return the shape of an input."""
        return ca.Sparsity.dense(list(self._given[0].values())[i], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:  # noqa: ARG002  # CasADi's
        """Return the shape of u."""
        return ca.Sparsity.dense(self._given[1], 1)

    def eval(self, arg: Sequence[ca.DM]) -> list[Any]:
        """Return u for numbers."""
        sizes, _, answer = self._given
        return [answer({n: np.array(x).ravel() for n, x in zip(sizes, arg, strict=True)})]


def call_of_user(who: str, t: float, call: Callable[[], object]) -> object:
    """Return what a function of the user answers.

    Raises:
        ControllerError: it raised; the cause is its error, with its traceback.
    """
    try:
        return call()
    except MbcasadiError:
        raise  # of ours: it says what to do
    except Exception as error:
        raise ControllerError(
            f"at t = {t:.6g} s, {who} raised {type(error).__name__}: {error}"
        ) from error


def _require_arguments(law: Callable[..., object]) -> None:
    """Raise `ProblemError` unless a callable takes three arguments by position."""
    try:
        signature = inspect.signature(law)
    except (TypeError, ValueError):  # written in C, without a signature
        return
    try:
        signature.bind(0.0, None, None)
    except TypeError:
        raise ProblemError(
            f"controller is a function of {signature}; expected (t, q, v) → u; bind other "
            "arguments with functools.partial, or give a ca.Function or a Policy"
        ) from None
