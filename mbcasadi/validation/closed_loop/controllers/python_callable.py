"""A Python callable `(t, q, v) → u`, or a policy, observation → action, in the loop."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import casadi as ca
import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.description import Controller
from mbcasadi.errors import ControllerError, MbcasadiError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.readable_signatures import readable_fields
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
        return CheckedTick({n: sizes_of(plant)[n] for n in INPUTS}, self._answer)

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
        self, sizes: Mapping[str, int], answer: Callable[[Mapping[str, Array]], Array]
    ) -> None:
        self._sizes, self._answer = dict(sizes), answer

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


@runtime_checkable
class Predictor(Protocol):
    """A policy as stable-baselines3 has it: `predict(observation) → (action, state)`.

    It returns its deterministic action, and the state of a recurrent policy, where
    `predict` takes `deterministic` and `state`.
    """

    def predict(self, observation: Any) -> tuple[Any, Any]: ...  # noqa: D102


@readable_fields
@dataclass(frozen=True)
class Policy:
    """A policy of reinforcement learning, and how it is joined to a plant.

    Attributes:
        observe: MuJoCo's data of the present state, all of it evaluated (`mj_forward`) → the
            observation. `data.ctrl` is the control that acted last; `data.time` is in s. Do not
            write into it.
        policy: observation → action, or an object with `predict(observation) → (action, state)`.
        action: the action → u (nu,) in MuJoCo's `ctrl`; the action itself by default.

    Raises:
        ProblemError: something else.
    """

    observe: Callable[[mujoco.MjData], Any]
    policy: Callable[[Any], Any] | Predictor
    action: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        require_fields(self)


class PolicyRun(Runnable):
    """A policy on a plant.

    Attributes:
        controller: names, sizes, limits and period.
        policy: with its observation and its action.
    """

    def __init__(self, policy: Policy, plant: Plant, period: float) -> None:
        self.policy = policy
        given = policy.policy
        name = getattr(given, "__name__", type(given).__name__)
        self._who = f"the policy {name!r}"
        function = AnswerFunction(name, sizes_of(plant), plant.nu, self._at_state(plant.model))
        self.controller = describe(name, function, plant, period)

    @property
    def kind(self) -> str:
        """What runs, in words."""
        return "a policy in Python"

    def start(self, plant: Plant) -> Tick:
        """Return what observes this plant and calls the policy."""
        decide = _decision(self.policy.policy)

        def answer(values: Mapping[str, Array]) -> Array:
            plant.measure(np.array(plant.data.ctrl))  # evaluates what an observation may read
            return self._answer(decide, plant.data, float(values["t"][0]))

        return CheckedTick(sizes_of(plant), answer)

    def _at_state(self, model: mujoco.MjModel) -> Callable[[Mapping[str, Array]], Array]:
        """Return the control at any state, as the first one of a run."""

        def answer(values: Mapping[str, Array]) -> Array:
            data = mujoco.MjData(model)
            data.time, data.qpos, data.qvel = values["t"][0], values["q"], values["v"]
            data.act = values["act"]
            mujoco.mj_forward(model, data)
            return self._answer(_decision(self.policy.policy), data, float(data.time))

        return answer

    def _answer(self, decide: Callable[[Any], Any], data: mujoco.MjData, t: float) -> Array:
        def control() -> object:
            action = decide(self.policy.observe(data))
            return action if self.policy.action is None else self.policy.action(action)

        return control_of(call_of_user(self._who, t, control), int(data.ctrl.size), t, self._who)


def _decision(policy: Callable[[Any], Any] | Predictor) -> Callable[[Any], Any]:
    """Return observation → action, with a new state where a policy has one."""
    if not isinstance(policy, Predictor):
        return policy
    takes = inspect.signature(policy.predict).parameters
    options: dict[str, Any] = {"deterministic": True} if "deterministic" in takes else {}

    def decide(observation: Any) -> Any:
        action, state = policy.predict(observation, **options)
        if "state" in takes:
            options["state"] = state
        return action

    return decide
