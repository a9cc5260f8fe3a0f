"""An environment of Gymnasium: an agent commands a controller, which runs as C in MuJoCo."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi import models
from mbcasadi.argument_kinds import checked
from mbcasadi.environments.actions import REFERENCE, TUNING, Commands
from mbcasadi.errors import ProblemError, RenderingError, SimulationError
from mbcasadi.extras import require_extra
from mbcasadi.plant import Plant, Source
from mbcasadi.shapes import require_whole
from mbcasadi.validation.closed_loop import Controllable, Scenario, compile_controller
from mbcasadi.validation.closed_loop.closed_loop import ClosedLoop
from mbcasadi.validation.closed_loop.sensing import loaded_estimator
from mbcasadi.validation.run.preparation import prepare
from mbcasadi.validation.spec import build_experiment, read_spec
from mbcasadi.validation.trial import Trial

require_extra("gym", "an environment", "gymnasium")
import gymnasium  # noqa: E402
from gymnasium.spaces import Box  # noqa: E402

Array = NDArray[np.float64]


HEIGHT, WIDTH = 480, 640  # pixels


class EnvStep(NamedTuple):
    """What a step of an environment came to.

    Attributes:
        data: of MuJoCo, at the end of the step; not to be kept.
        action: (n,) of the agent, in [-1, 1].
        row: all that was measured in its last tick, by name, as in a `Recording`.
        is_safe: whether the controller gave its safe output in one of its ticks.
    """

    data: mujoco.MjData
    action: Array
    row: Mapping[str, Array]
    is_safe: bool


def state_of(step: EnvStep) -> Array:
    """Return q, v and act: the default observation."""
    return np.concatenate([step.data.qpos, step.data.qvel, step.data.act])


def alive(step: EnvStep) -> float:
    """Return 1 for each step without a safe output: the default reward."""
    return float(not step.is_safe)


class ControlledEnv(gymnasium.Env[Array, Array]):
    """A model with a controller underneath, as an environment.

    Actions are in [-1, 1]; `actions` says what they mean. Underneath runs the generated C of the
    controller, with its limits and its safe output. A step is `ticks` of its periods. An episode
    is terminated where the plant diverges, where the controller gave its safe output, or where
    `terminate` says so, and truncated at the trial's `duration`.

    Args:
        model: MJCF or URDF file, XML text, `MjSpec` or `MjModel`.
        controller: ours or another, as in `validate`; None: actions are controls, `period` is the
            trial's.
        trial: start, duration, errors, delay, pushes, sensors; its reference is what actions add
            to.
        actions: name → (low, high), what -1 and 1 mean, each a number or one for each entry: "ref",
            a slice of it ("trunk.position") or an entry ("trunk.position.z"), added to the
            reference; an entry or slice of `tuning`, in its place; "u", the control.
        ticks: of the controller in one step.
        observe: what the agent sees of a step; q, v and act by default.
        reward: of a step; 1 by default.
        terminate: whether a step ends the episode.
        start_error: standard deviation of each coordinate at the start, rad or m.
        perturb: parameter → (low, high), relative errors of the plant drawn at each `reset`, in the
            place of those of the trial.
        render_mode: "rgb_array", or None.

    Attributes:
        plant: of this episode.

    Raises:
        MbcasadiError: what `validate` raises where model, controller and trial do not fit.
        UnknownNameError: an action that the controller does not take; the message lists them.
        ProblemError: actions without bounds, or numbers out of range.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012  # Gymnasium's

    @checked
    def __init__(
        self,
        model: Source,
        controller: Controllable | None,
        trial: Trial,
        actions: Mapping[str, Sequence[Any]],
        *,
        ticks: int = 1,
        observe: Callable[[EnvStep], Any] = state_of,
        reward: Callable[[EnvStep], Any] = alive,
        terminate: Callable[[EnvStep], Any] | None = None,
        start_error: float = 0.0,
        perturb: Mapping[str, Sequence[float]] | None = None,
        render_mode: str | None = None,
    ) -> None:
        require_whole(1, ticks=ticks)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ProblemError(f'render_mode is {render_mode!r}; expected "rgb_array" or None')
        if not 0 <= start_error < np.inf:
            raise ProblemError(f"start_error is {start_error}; expected a number from 0 on")
        self.render_mode, self._ticks, self._start_error = render_mode, ticks, start_error
        self._observe, self._reward, self._terminate = observe, reward, terminate
        self._ranges, self._stack = dict(perturb or {}), ExitStack()
        given: Controllable = self._control if controller is None else controller
        self._ready = ready = prepare(given, model, trial)
        self._law = self._stack.enter_context(compile_controller(ready.controller))
        described = self._law.controller
        self._commands = Commands(described, actions, is_controlled=controller is not None)
        self._scenario = self._moved(trial)
        self.plant: Plant = ready.plant
        self._renderer: mujoco.Renderer | None = None
        seconds = ticks * described.period
        self.metadata = {**self.metadata, "render_fps": round(1 / seconds)}
        self._last = round(trial.duration / described.period)
        self.action_space = Box(-1.0, 1.0, (self._commands.size,), np.float64)
        size = np.size(self.reset()[0])
        self.observation_space = Box(-np.inf, np.inf, (size,), np.float64)

    def _control(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:  # noqa: ARG002
        """Return the control that the agent commands."""
        return self._commands.control()

    def _moved(self, trial: Trial) -> Scenario:
        """Return the scenario of all episodes, with what the agent commands."""
        ready, described, commands = self._ready, self._law.controller, self._commands
        options, reference = trial.scenario, ready.reference
        if commands.commands(TUNING):
            own = described.default_tuning if options.tuning is None else options.tuning
            options = replace(options, tuning=commands.tuning(own))
        if commands.commands(REFERENCE):
            if reference is None:
                raise ProblemError(
                    "actions add to the reference, but an outer law computes it; expected actions "
                    f"on entries of {TUNING}, or a controller alone"
                )
            reference = commands.reference(reference)
        estimator = loaded_estimator(trial.sensors, ready.plants.model, few=False)
        return Scenario(
            trial.duration, reference, ready.start, trial.v0, trial.delay, trial.disturbance,
            options, estimator,
        )  # fmt: skip

    @checked
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode; return the observation and `info`.

        Args:
            seed: of what is drawn from here on: errors of the start and of the plant.
            options: not used.
        """
        if seed is not None:
            require_whole(0, seed=seed)
        super().reset(seed=seed, options=options)
        draw = self.np_random
        if self._ranges:
            errors = {
                name: float(draw.uniform(ends[0], ends[1])) for name, ends in self._ranges.items()
            }
            self.plant = replace(self._ready.plants, perturb=errors).make()
            self._close_renderer()
        start = self._scenario.q0
        if self._start_error:
            error = draw.normal(0.0, self._start_error, self.plant.nv)
            start = self.plant.integrate(start, error)
        self._commands.reset()
        self._loop = ClosedLoop(self._law, self.plant, replace(self._scenario, q0=start))
        step = EnvStep(self.plant.data, np.zeros(self._commands.size), {}, is_safe=False)
        return self._seen(step), {"errors": dict(self.plant.factors)}

    @checked
    def step(self, action: ArrayLike) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Run the controller for its ticks under an action (n,).

        Returns:
            Observation, reward, terminated, truncated, `info`: status and u of the last tick, and
            what ended the episode.
        """
        self._commands.take(action)
        row, is_safe, why = dict[str, Array](), False, ""
        safe = self._law.controller.safe_statuses
        for _ in range(self._ticks):
            try:
                row = self._loop.control()
                self._loop.advance()
            except SimulationError as error:
                why = str(error)
                break
            is_safe |= bool(np.isin(self._loop.outputs.get("status", 0.0), safe).any())
        step = EnvStep(self.plant.data, np.array(action, dtype=float), row, is_safe)
        if not why and is_safe:
            why = "safe output"
        if not why and self._terminate is not None and self._terminate(step):
            why = "terminate"
        info = {"u": row.get("u"), "status": row.get("status"), "ended": why}
        seen, reward = self._seen(step), float(self._reward(step))
        return seen, reward, bool(why), self._loop.tick >= self._last, info

    def _seen(self, step: EnvStep) -> Array:
        return np.array(self._observe(step), dtype=float).ravel()

    def render(self) -> Any:
        """Return a picture (480, 640, 3); None without `render_mode`.

        Raises:
            RenderingError: no renderer here.
        """
        if self.render_mode is None:
            return None
        if self._renderer is None:
            try:
                self._renderer = mujoco.Renderer(self.plant.model, HEIGHT, WIDTH)
            except Exception as error:  # whatever a library of OpenGL raises
                raise RenderingError(
                    f"no renderer: {error}; set MUJOCO_GL to egl or osmesa before the program "
                    "starts, and install libegl1 or libosmesa6"
                ) from error
        self._renderer.update_scene(self.plant.data)
        return self._renderer.render()

    def _close_renderer(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = None

    def close(self) -> None:
        """Delete the compiled controller."""
        self._close_renderer()
        self._stack.close()


@checked
def make_controlled(
    model: str | Path,
    spec: str | Path,
    actions: Mapping[str, Sequence[Any]],
    *,
    duration: float | None = None,
    allow_code: bool = False,
    ticks: int = 1,
    observe: Callable[[EnvStep], Any] = state_of,
    reward: Callable[[EnvStep], Any] = alive,
    terminate: Callable[[EnvStep], Any] | None = None,
    start_error: float = 0.0,
    perturb: Mapping[str, Sequence[float]] | None = None,
    render_mode: str | None = None,
) -> ControlledEnv:
    """Return the environment of a model and a controller file.

    Gymnasium knows it as "mbcasadi.environments:mbcasadi/Controlled-v0", also for `make_vec`.

    Args:
        model: name of a model of the package, or a file.
        spec: controller file, as `mbcasadi init` writes it; its trial is that of the episodes.
        duration: s, of an episode; the file's by default.
        allow_code: whether the file may name Python code of its author.
        actions, ticks, observe, reward, terminate, start_error, perturb, render_mode: as in
            `ControlledEnv`.

    Raises:
        MbcasadiError: what file, model or environment say.
    """
    values = read_spec(Path(spec), allow_code=allow_code)
    path = models.find(model)
    experiment = build_experiment(values, path)
    trial = values.trial if duration is None else replace(values.trial, duration=duration)
    with ExitStack() as stack:
        complete = stack.enter_context(experiment.complete(trial))
        source = values.model(path)
        env = ControlledEnv(
            source, experiment.controller, complete, actions, ticks=ticks, observe=observe,
            reward=reward, terminate=terminate, start_error=start_error, perturb=perturb,
            render_mode=render_mode,
        )  # fmt: skip
        env._stack.push(stack.pop_all())
    return env


ID = "mbcasadi/Controlled-v0"
if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="mbcasadi.environments:make_controlled")
