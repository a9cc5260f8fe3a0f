"""What each control law costs in generated C: operations, lines, and the time of one tick.

Every tick of a record of closed states is timed in a C program, caches warm, the state carried
from tick to tick as on a robot. There is no peer: the figure to keep is 10 µs on mechanisms of up
to ten joints.

    python -m bench laws --json > laws.json
    python -m bench.laws laws.json          # the same as a Markdown table
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.law_cases import CASES, Case, inputs, system_of
from mbcasadi.codegen import export_c

FLAGS = ("-O2",)
STATES, REPEATS = 200, 20
QUICK_REPEATS = 2
SUITE = "laws"
NO_PEER = "-"


def run(quick: bool = False) -> dict[str, Any]:
    """Time every law; return `{"rows", "flags", "operations", "lines", "p99"}`."""
    results: dict[str, Any] = {"rows": [], "flags": " ".join(FLAGS)}
    results |= {"operations": {}, "lines": {}, "p99": {}}
    with tempfile.TemporaryDirectory(prefix="mbcasadi-laws-") as folder:
        for k, case in enumerate(CASES):
            _add(results, case, Path(folder) / str(k), QUICK_REPEATS if quick else REPEATS)
    return results


def _add(results: dict[str, Any], case: Case, folder: Path, repeats: int) -> None:
    system = system_of(case.model)
    law = case.build(system)
    project = export_c(law, folder)
    record = {name: value.T for name, value in inputs(law, STATES).items() if value.size}
    times = project.time(record, repeats, flags=FLAGS)
    model = f"{case.model}, nv {system.nv}, nc {system.nc}"
    key = f"{model}: {case.law}"
    results["rows"].append(
        {
            "model": model,
            "quantity": case.law,
            "ours": times.median,
            "peer": NO_PEER,
            "peer_time": None,
            "ratio": None,
        }
    )
    results["operations"][key] = project.operations
    results["lines"][key] = project.lines
    results["p99"][key] = times.p99


def table(results: dict[str, Any]) -> str:
    """Return the costs as Markdown, from the JSON of `python -m bench laws`."""
    sizes = results["settings"][SUITE]
    lines = [
        "| law | mechanism | operations | lines of C | µs, median |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for row in results["rows"]:
        key = f"{row['model']}: {row['quantity']}"
        cells = [f"`{row['quantity']}`", row["model"], f"{sizes['operations'][key]:,}"]
        cells += [f"{sizes['lines'][key]:,}", f"{1e6 * row['ours']:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
