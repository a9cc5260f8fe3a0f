"""A slower law above the one that is validated: two rates, both as generated C.

A robot runs them as two tasks: the outer law takes several ticks of the inner one and answers
late. So here too: the answer to what was measured at an outer tick acts `delay` outer ticks later,
and until then the last one does. The inner law stays one controller with one QP, and its C is the
same with and without an outer law.
"""

import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.codegen import CProject, TickTimes, export_c
from mbcasadi.description import Controller
from mbcasadi.errors import ProblemError
from mbcasadi.shapes import column
from mbcasadi.validation.closed_loop.compiled_law import Caller, CompiledLaw, HasController

Array = NDArray[np.float64]
Command = Callable[[float], ArrayLike] | ArrayLike
OUTER = "outer_"  # before the names of the guide's outputs that the outer law takes


class Guide(Protocol):
    """What joins two laws.

    Attributes:
        function: (t, q, v, command, u, z) → (ref, mask, outer_*, z_next) at each tick of the inner
            law: `u` is the outer law's answer that acts, `outer_<name>` its input `<name>`.
        z0, u0: state and answer to start from.
        every: ticks of the inner law in one of the outer.
        delay: ticks of the outer law from its measurement to when its answer acts.
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


class OuterLaw:
    """The outer law and its guide at work; `validate(..., outer=)` takes it.

    Attributes:
        law: the outer law, compiled.
        record: what its ticks were given and what they answered, since `begin`; name → rows.
    """

    def __init__(self, law: CompiledLaw, guide: Guide, compiled: CProject, command: Command):
        self.law = law
        self._guide, self._command, self.project = guide, command, compiled
        self._say, self._solve = Caller(compiled.load()), Caller(law.function)
        wanted = {name for name in self._solve.names_in if name != "z"}
        missing = wanted - {name.removeprefix(OUTER) for name in self._say.names_out}
        if missing:
            raise ProblemError(
                f"the guide {guide.function.name()!r} gives no {', '.join(sorted(missing))} for "
                f"{law.controller.name!r}; expected outputs named {OUTER}<input>"
            )
        self.begin()

    @property
    def every(self) -> int:
        """Ticks of the inner law in one of the outer."""
        return self._guide.every

    def begin(self) -> None:
        """Forget everything: a run starts."""
        self._tick, self._z, self._u = 0, self._guide.z0, self._guide.u0
        self._z_law = self.law.controller.z0
        self._line: deque[Array] = deque([self._guide.u0] * self._guide.delay)
        self.record: dict[str, list[Array]] = {}

    def __call__(self, measured: Mapping[str, Array]) -> dict[str, Array]:
        """Return `ref` and `mask` of the inner law at this tick, from t, q and v."""
        due = self._tick % self._guide.every == 0
        self._tick += 1
        if due and self._line:
            self._u = self._line.popleft()
        t = float(measured["t"][0])
        command = column(
            "command",
            self._command(t) if callable(self._command) else self._command,
            self._say.size("command"),
        )
        told = self._say({**measured, "command": command, "u": self._u, "z": self._z})
        self._z = told["z_next"]
        if due:
            self._ask({name.removeprefix(OUTER): value for name, value in told.items()})
        return {"ref": told["ref"], "mask": told["mask"]}

    def _ask(self, told: dict[str, Array]) -> None:
        inputs = {n: told[n] for n in self._solve.names_in if n != "z"} | {"z": self._z_law}
        answer = self._solve(inputs)
        self._z_law = answer["z_next"]
        if self._guide.delay:
            self._line.append(answer["u"])
        else:
            self._u = answer["u"]
        for name, value in {**inputs, "u": answer["u"], "status": answer["status"]}.items():
            self.record.setdefault(name, []).append(np.array(value))

    def times(self) -> TickTimes:
        """Return the time of each tick of the outer law's C, with the inputs of the run."""
        inputs = {n: np.array(self.record[n]) for n in self._solve.names_in}
        return self.law.project.time(inputs, repeats=1)


@contextmanager
def outer_law(
    controller: Controller | HasController, guide: Guide, command: Command
) -> Iterator[OuterLaw]:
    """Export an outer law and its guide to a temporary folder, compile them, and hand them out.

    Args:
        controller: the outer law; it may take any inputs that the guide gives.
        guide: what joins it with the inner law.
        command: (ncommand,), or a function of time.

    Raises:
        ProblemError: the guide does not give what the law takes.
        ExportError: the C could not be generated or built.
    """
    data = controller.controller if isinstance(controller, HasController) else controller
    with tempfile.TemporaryDirectory(prefix="mbcasadi-") as folder:
        project = export_c(data, Path(folder) / "law")
        law = CompiledLaw(data, project.load(), project)
        named = guide.controller if isinstance(guide, HasController) else guide.function
        yield OuterLaw(law, guide, export_c(named, Path(folder) / "guide"), command)
