"""The supervision of two rates: that of the law's ticks, and plausible inputs of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca

from mbcasadi.codegen.c_interface import STATES, CLaw, Port, law_template
from mbcasadi.codegen.example_run import example_inputs
from mbcasadi.codegen.supervision.plan import InputChecks, Plan, checked_inputs, plan_supervision
from mbcasadi.codegen.supervision.supervised_c import examine_inputs, tables_of_inputs
from mbcasadi.codegen.supervision.supervision import Supervision
from mbcasadi.shapes import require_name

INTEGERS = 6
"""Of the state that examines a plan's inputs, beside one for each checked input, and gaps."""


@dataclass(frozen=True)
class Watch:
    """What is supervised.

    Attributes:
        ticks: of the law.
        plans: inputs of a plan; a jump is that from one plan to the next.
    """

    ticks: Plan
    plans: InputChecks

    @property
    def state_doubles(self) -> int:
        """Size of what one plan hands to the next, in doubles."""
        integers = len(self.plans.checked) + INTEGERS
        return self.plans.entries + 1 + (integers + 1) // 2


def watch_of(
    supervision: Supervision,
    law: CLaw,
    function: ca.Function,
    plan_inputs: Sequence[Port],
    every: int,
) -> Watch:
    """Return the numbers of a supervision.

    Args:
        supervision: of the user; `inputs` names those of a tick or of a plan, or of both.
        law: the fast law.
        function: the whole of it.
        plan_inputs: of the function that plans.
        every: ticks in one period of the plan.

    Raises:
        UnknownNameError, ShapeError, ProblemError, ExportError: as `plan_supervision`.
    """
    of_tick = [port.name for port in law.inputs if port.name not in STATES]
    of_plan = [port.name for port in plan_inputs]
    for name in supervision.inputs:
        require_name("input", name, [*dict.fromkeys([*of_plan, *of_tick])])
    limits = supervision.inputs
    ticks = plan_supervision(
        replace(supervision, inputs={k: v for k, v in limits.items() if k in of_tick}),
        law,
        function,
        example_inputs(law.inputs, law.defaults, {}),
    )
    own = {k: v for k, v in limits.items() if k in of_plan}
    ports = tuple(plan_inputs)
    return Watch(ticks, InputChecks(ports, checked_inputs(own, ports, every), -1))


def watch_of_source(watch: Watch | None, law: CLaw, name: str) -> dict[str, str | int]:
    """Return what the C of two rates has of a supervision, `law` that of the ticks."""
    prefix = law.name.upper()
    if watch is None:
        keys = ("include", "text", "state", "parameters", "arguments", "unused", "in", "bind")
        none: dict[str, str | int] = {f"watch_{key}": "" for key in (*keys, "functions")}
        return none | {"watch_work": f"  double law[{prefix}_MEMORY_DOUBLES];\n"}
    checks = watch.plans
    bind = "".join(f"  in[{i}] = {port.identifier};\n" for i, port in enumerate(checks.inputs))
    numbers: dict[str, str | int] = {
        "n_in": len(checks.inputs),
        "n_checked": len(checks.checked),
        "entries": checks.entries,
        "tables": tables_of_inputs(checks, law),
        "examine": examine_inputs(law),
    }
    return {
        "watch_include": f'#include "{law.name}_supervised.h"\n',
        "watch_text": law_template(law, "two_rates/watch.c.in", numbers),
        "watch_state": "  struct supervised watched; /* inputs of plans */\n",
        "watch_parameters": ", void *log, uint32_t sample",
        "watch_arguments": ", log, sample",
        "watch_unused": "  (void)log;\n",
        "watch_in": "  const double *in[IN + 1] = {0};\n",
        "watch_bind": bind + "  m->watched.events = examine(&m->watched, 0, in);\n",
        "watch_work": f"  double law[{prefix}_SUPERVISED_DOUBLES];\n",
        "watch_functions": law_template(law, "two_rates/watch_functions.c.in", {"name": name}),
    }


def watch_of_header(watch: Watch | None, law: CLaw, name: str) -> dict[str, str | int]:
    """Return what the header has of a supervision, `law` that of the ticks."""
    if watch is None:
        keys = ("stdint", "parameters", "lines", "returns", "functions", "state")
        return {f"watch_{key}": "" for key in keys}
    looks = "" if watch.ticks.stale_after >= 0 else "; this supervision does not look at it"
    return {
        "watch_stdint": "#include <stdint.h>\n",
        "watch_parameters": ", void *log, uint32_t sample",
        "watch_lines": f" *   in  log     of {law.name}_log_init, or null\n"
        f" *   in  sample  number that changes with each new measurement{looks}\n",
        "watch_state": f"\n * The state of the law's ticks is that of {name}_law_supervised_get.",
        "watch_returns": " While the safe law acts that is the status of bad input.",
        "watch_functions": law_template(law, "two_rates/watch.h.in", {"name": name}),
    }


def watch_of_class(watch: Watch | None, name: str) -> dict[str, str | int]:
    """Return what the class of C++ has of a supervision."""
    if watch is None:
        return {"watch_parameters": "", "watch_arguments": "", "watch_law": ""}
    return {
        "watch_parameters": "void *log, std::uint32_t sample, ",
        "watch_arguments": ", log, sample",
        "watch_law": f"\n  /* For the functions of {name}_law_supervised.h. */\n"
        f"  void *law() noexcept {{ return {name}_law(memory_.data()); }}\n",
    }


def watch_of_pages(watch: Watch | None, name: str) -> dict[str, str | int]:
    """Return what README and example have of a supervision."""
    if watch is None:
        keys = ("given", "arguments", "row", "text")
        return {f"watch_{key}": "" for key in keys}
    return {
        "watch_given": ", 0, (uint32_t)tick",
        "watch_arguments": ", log, sample",
        "watch_row": f"| `{name}_law_supervised.h`, `.c` | supervision of a tick, and log |\n",
        "watch_text": "The tick is supervised: `sample` is a number that changes with each new "
        f"measurement, `log` memory of `{name}_law_log_init`, or 0.\n`{name}_law(memory)` is what "
        f"the functions of `{name}_law_supervised.h` take. A plan from inputs that are not "
        "plausible is not handed on.\n",
    }
