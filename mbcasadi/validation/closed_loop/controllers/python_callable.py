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
from mbcasadi.errors import ControllerError, MbcasadiError, ProblemError
from mbcasadi.plant import Plant
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.validation.closed_loop.controllers.description import (
    CheckedTick,
    OtherController,
    c_name,
    control_of,
    describe,
    sizes_of,
)

Array = NDArray[np.float64]
INPUTS = ("t", "q", "v")


def python_callable(law: Callable[..., object], plant: Plant, period: float) -> OtherController:
    """Return a function of the user, called with copies of t (a float), q (nq,) and v (nv,)."""
    _require_arguments(law)
    name, nu = getattr(law, "__name__", type(law).__name__), plant.nu
    who = f"the function {name!r}"
    sizes = {key: size for key, size in sizes_of(plant).items() if key in INPUTS}

    def outputs(values: Mapping[str, Array]) -> dict[str, Array]:
        t = float(values["t"][0])
        u = call_of_user(who, t, lambda: law(t, values["q"].copy(), values["v"].copy()))
        return {"u": control_of(u, nu, t, who)}

    data = describe(name, AnswerFunction(name, sizes, nu, outputs), plant, period)
    return OtherController(data, law, "a Python function", lambda _: CheckedTick(sizes, outputs))


class AnswerFunction(ca.Callback):
    """A function of the user as a named `ca.Function`, without derivatives.

    The closed loop calls the user's function itself; this is what `Controller.function` is.
    """

    def __init__(
        self,
        name: str,
        sizes: Mapping[str, int],
        nu: int,
        outputs: Callable[[Mapping[str, Array]], dict[str, Array]],
    ) -> None:
        ca.Callback.__init__(self)
        self._given = (dict(sizes), nu, outputs)
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
        sizes, _, outputs = self._given
        return [outputs({n: np.array(x).ravel() for n, x in zip(sizes, arg, strict=True)})["u"]]


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


def policy_run(policy: Policy, plant: Plant, period: float) -> OtherController:
    """Return a policy on a plant."""
    given, model, nu, sizes = policy.policy, plant.model, plant.nu, sizes_of(plant)
    name = getattr(given, "__name__", type(given).__name__)
    who = f"the policy {name!r}"

    def control(decide: Callable[[Any], Any], data: mujoco.MjData, t: float) -> dict[str, Array]:
        def act() -> object:
            action = decide(policy.observe(data))
            return action if policy.action is None else policy.action(action)

        return {"u": control_of(call_of_user(who, t, act), nu, t, who)}

    def at_any_state(values: Mapping[str, Array]) -> dict[str, Array]:
        """Return the control at a state, as the first one of a run."""
        data = mujoco.MjData(model)
        data.time, data.qpos, data.qvel = values["t"][0], values["q"], values["v"]
        data.act = values["act"]
        mujoco.mj_forward(model, data)
        return control(_decision(given), data, float(data.time))

    def begin(on: Plant) -> CheckedTick:
        decide = _decision(given)

        def outputs(values: Mapping[str, Array]) -> dict[str, Array]:
            on.measure(np.array(on.data.ctrl))  # evaluates what an observation may read
            return control(decide, on.data, float(values["t"][0]))

        return CheckedTick(sizes, outputs)

    data = describe(name, AnswerFunction(name, sizes, nu, at_any_state), plant, period)
    return OtherController(data, policy, "a policy in Python", begin)


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
