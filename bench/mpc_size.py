"""Size of exported MPC: operations, the largest function, lines of C, what the compiler needs.

Each problem is exported and compiled with the flags that the package chooses. The program fails
where one function is larger, or the compiler takes longer or more memory, than the limits below.

    python -m bench.mpc_size              # a table; names of problems may follow
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import mpc, mpc_rigid_body, mpc_rti
from mbcasadi.codegen import export_c
from mbcasadi.codegen.count import Size

LARGEST_FUNCTION = 100_000  # operations
LONGEST, MOST = 60.0, 2e9  # s and bytes, of the compiler

PROBLEMS: dict[str, Callable[[], Any]] = {
    "double integrator, N = 20": lambda: mpc.double_integrator(20, box=True),
    "double integrator, N = 50": lambda: mpc.double_integrator(50, box=True),
    "quadruped as one rigid body, N = 10": mpc_rigid_body.quadruped,
    "cart-pole, real-time iteration, N = 50": lambda: mpc_rti.cart_pole().rti,
    "pendulum on a four-bar, real-time iteration, N = 30": lambda: mpc_rti.four_bar().rti,
    "planar biped, real-time iteration, N = 20": lambda: mpc_rti.planar_biped().rti,
}


def measure(make: Callable[[], Any]) -> Size:
    """Return the size of an export, compiled with the flags that the package chooses."""
    with tempfile.TemporaryDirectory(prefix="mbcasadi-size-") as folder:
        return export_c(make(), Path(folder)).size()


def keeps_limits(size: Size) -> bool:
    """Return whether an export keeps the limits."""
    build = size.build
    return (
        size.largest_function <= LARGEST_FUNCTION
        and build.seconds <= LONGEST
        and build.peak_bytes <= MOST
    )


def table(sizes: dict[str, Size]) -> str:
    """Return the sizes as Markdown."""
    head = ["problem", "operations", "largest function", "lines of C", "library, kB"]
    head += ["compiler, s", "compiler, MB"]
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    for name, size in sizes.items():
        cells = [name, f"{size.operations:,}", f"{size.largest_function:,}", f"{size.lines:,}"]
        cells += [f"{size.library_bytes / 1e3:.0f}", f"{size.build.seconds:.1f}"]
        cells += [f"{size.build.peak_bytes / 1e6:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(names: list[str]) -> int:
    """Print the table; return 1 where a limit is broken."""
    sizes = {name: measure(make) for name, make in PROBLEMS.items() if not names or name in names}
    print(table(sizes))
    beyond = [name for name, size in sizes.items() if not keeps_limits(size)]
    for name in beyond:
        print(f"{name}: beyond {LARGEST_FUNCTION} operations, {LONGEST} s or {MOST / 1e9} GB")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
