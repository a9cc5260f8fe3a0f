"""A policy, observation → action, in the loop."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import require_fields
from mbcasadi.plant import Plant
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.validation.closed_loop.controllers.description import (
    control_of,
    describe,
    sizes_of,
)
from mbcasadi.validation.closed_loop.controllers.python_callable import (
    AnswerFunction,
    CheckedTick,
    call_of_user,
)
from mbcasadi.validation.closed_loop.runnable import Runnable, Tick

Array = NDArray[np.float64]
INPUTS = ("t", "q", "v", "act")


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
        function = AnswerFunction(name, _sizes(plant), plant.nu, self._at_state(plant.model))
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

        return CheckedTick(_sizes(plant), plant.nu, answer)

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


def _sizes(plant: Plant) -> dict[str, int]:
    return {name: sizes_of(plant)[name] for name in INPUTS}


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
