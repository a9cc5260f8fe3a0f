"""A slower control law above the one that is validated: two rates, both as generated C.

A robot runs them as two tasks: the outer law takes several ticks of the inner one, and its output
is late. The same holds here: the control computed from a measurement at an outer tick acts
`delay` outer ticks later, and the previous one acts until then. The inner law stays one
controller with one QP; its C is the same with and without an outer law.
"""

import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.codegen import CProject, TickTimes, export_c
from mbcasadi.description import Controller
from mbcasadi.description.controller import HasController
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.validation.closed_loop.compiled_law import Caller, CompiledLaw

Array = NDArray[np.float64]
Command = Callable[[float], ArrayLike] | ArrayLike
NOTHING: Mapping[str, Array] = MappingProxyType({})
TIMED_TICKS = 2000  # that are timed in C, from the start of the run
OUTER = "outer_"  # prefix of the planner's outputs that are inputs of the outer law


@runtime_checkable
class Planner(Protocol):
    """What connects an outer law with an inner one, for example a footstep planner.

    Attributes:
        function: (q, v, [f_measured], command, u, [age], [disturbance], t, z) → (ref, mask,
            outer_*, z_next) at each tick of the inner law: `u` is the outer law's control that
            acts, or its output `plan` where it has one, `age` the time for which it has acted, s,
            `outer_<name>` its input `<name>`, `f_measured` the forces n, t1, t2 of the inner law's
            contacts, `disturbance` its output of that name a tick before. A plan without a solution
            is not used: the one before it acts on.
        z0, u0: initial state, and the outer control that acts first.
        every: ticks of the inner law in one of the outer.
        delay: ticks of the outer law from its measurement to the moment at which its control acts.
    """

    @property
    def function(self) -> ca.Function: ...  # noqa: D102
    @property
    def z0(self) -> Array: ...  # noqa: D102
    @property
    def u0(self) -> Array: ...  # noqa: D102
    @property
    def every(self) -> int: ...  # noqa: D102
    @property
    def delay(self) -> int: ...  # noqa: D102


@runtime_checkable
class SpeedPlanner(Protocol):
    """A planner whose command says how fast a base goes and turns.

    Attributes:
        speeds: entries of the command: speeds along x and y of the base, m/s, and its turn, rad/s;
            None for none.
    """

    @property
    def speeds(self) -> slice | None: ...  # noqa: D102


def speeds_of(planner: Planner) -> slice | None:
    """Return the entries of a planner's command that are speeds of the base, None for none."""
    return planner.speeds if isinstance(planner, SpeedPlanner) else None


class OuterLaw:
    """An outer law with its planner; `ScenarioOptions(outer=)` takes it.

    Attributes:
        law: the outer law, compiled.
        planner, project, command: the planner, its export, and the command.
        tuning: numbers of the law that may change at run time, where it has any; None for their
            defaults.
        record: inputs, `u`, `status` and `z_next` of its ticks since `reset`; name → rows.
        commands: at each tick of the inner law since `reset`.
    """

    @checked
    def __init__(
        self, law: CompiledLaw, planner: Planner, project: CProject, command: Command
    ) -> None:
        self.law = law
        self.planner, self.project, self.command = planner, project, command
        self._plan, self._solve = Caller(project.load()), Caller(law.function)
        self.tuning: Array | None = None
        own = {"z", *law.controller.defaults}
        required = {name for name in self._solve.names_in if name not in own}
        missing = required - {name.removeprefix(OUTER) for name in self._plan.names_out}
        if missing:
            raise ProblemError(
                f"the planner {planner.function.name()!r} has no output for "
                f"{', '.join(sorted(missing))} of {law.controller.name!r}; expected outputs named "
                f"{OUTER}<input>"
            )
        self.reset()

    @property
    def every(self) -> int:
        """Ticks of the inner law in one of the outer."""
        return self.planner.every

    @property
    def speeds(self) -> Array | None:
        """(nt, 3) commanded speeds of the base and its turn; None where none are commanded."""
        entries = speeds_of(self.planner)
        return None if entries is None else np.array(self.commands)[:, entries]

    @property
    def measures_forces(self) -> bool:
        """Whether the planner takes the measured forces of the contacts."""
        return self._plan.size("f_measured") > 0

    def reset(self) -> None:
        """Return to the initial state and clear the record, before a run."""
        self._tick, self._z, self._u = 0, self.planner.z0, self.planner.u0
        self._z_law = self.law.controller.z0
        self._pending: deque[Array | None] = deque([self.planner.u0] * self.planner.delay)
        self._since = 0.0
        self.record: dict[str, list[Array]] = {}
        self.commands: list[Array] = []

    def __call__(
        self, measured: Mapping[str, Array], before: Mapping[str, Array] = NOTHING
    ) -> dict[str, Array]:
        """Return `ref` and `mask` of the inner law at this tick.

        Args:
            measured: t, q, v and forces.
            before: outputs of the inner law a tick before; none at the first.
        """
        due = self._tick % self.planner.every == 0
        self._tick += 1
        t = float(measured["t"][0])
        if due and self._pending:
            self._act(self._pending.popleft(), t)
        command = column(
            "command",
            self.command(t) if callable(self.command) else self.command,
            self._plan.size("command"),
        )
        self.commands.append(command)
        own = {"command": command, "u": self._u, "age": np.array([t - self._since]), "z": self._z}
        own["disturbance"] = before.get("disturbance", np.zeros(self._plan.size("disturbance")))
        plan = self._plan({**measured, **own})
        self._z = plan["z_next"]
        if due:
            self._evaluate({name.removeprefix(OUTER): value for name, value in plan.items()}, t)
        return {"ref": plan["ref"], "mask": plan["mask"]}

    def _act(self, plan: Array | None, t: float) -> None:
        """Let a plan act from now on; None is one that was not solved."""
        if plan is not None:
            self._u, self._since = plan, t

    def _evaluate(self, plan: dict[str, Array], t: float) -> None:
        """Evaluate the outer law, and append the tick to the record."""
        known = self.law.controller.defaults | plan | {"z": self._z_law}
        known |= {} if self.tuning is None else {"tuning": self.tuning}
        inputs = {n: known[n] for n in self._solve.names_in}
        outputs = self._solve(inputs)
        self._z_law = outputs["z_next"]
        solved = int(outputs["status"][0]) not in self.law.controller.safe_statuses
        acts = outputs.get("plan", outputs["u"]) if solved or "plan" not in outputs else None
        if self.planner.delay:
            self._pending.append(acts)
        else:
            self._act(acts, t)
        kept = {name: outputs[name] for name in ("u", "status", "z_next") if name in outputs}
        for name, value in (inputs | kept).items():
            self.record.setdefault(name, []).append(np.array(value))

    def times(self) -> TickTimes:
        """Return the time of each tick of the outer law's C, with the inputs of the run."""
        inputs = {n: np.array(self.record[n][:TIMED_TICKS]) for n in self._solve.names_in}
        return self.law.project.time(inputs, repeats=1)


@checked
@contextmanager
def outer_law(
    controller: Controller | HasController | CompiledLaw, planner: Planner, command: Command
) -> Iterator[OuterLaw]:
    """Export an outer law and its planner to a temporary folder, compile both, and yield them.

    Args:
        controller: the outer law; it may have any inputs that the planner computes. The `law` of
            another `OuterLaw` is compiled already: one law serves several planners.
        planner: what connects it with the inner law.
        command: (ncommand,), or a function of time in s.

    Raises:
        ProblemError: the planner lacks an output that the law requires.
        ExportError: the C could not be generated or built.
    """
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        law = controller
        if not isinstance(law, CompiledLaw):
            data = law.controller if isinstance(law, HasController) else law
            project = export_c(data, Path(folder) / "law")
            law = CompiledLaw(data, project.load(), project)
        exported = planner.controller if isinstance(planner, HasController) else planner.function
        yield OuterLaw(law, planner, export_c(exported, Path(folder) / "planner"), command)
