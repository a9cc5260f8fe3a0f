"""Command line: `mbcasadi demo | inspect | check | init | export | validate | …`.

Every command has `--help` and `--json`. The exit status is 0 only if the command's own criteria
are fulfilled, 1 if they are not, 3 if no criterion judges the run, and 2 for bad input, with one
line on stderr.
"""

import gc
import importlib.util
import io
import sys

from mbcasadi.cli.interrupts import keep_interrupts, settle

ALLOCATIONS = 100_000
"""From one collection of garbage to the next. Imports make as many objects, which stay: Python's
usual 700 would look through them hundreds of times, for a tenth of a short command's time."""

TOOLS = ("typer", "rich", "pydantic", "jinja2", "matplotlib")  # the extra `tools`


def main() -> None:
    """Run the command line; without the extra `tools`, write how to install it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe on Windows may lack λ and ≤
            stream.reconfigure(errors="replace")
    absent = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if absent:
        sys.stderr.write(
            f"mbcasadi: the command line needs {', '.join(absent)}; "
            'install with: pip install "mbcasadi[tools]"\n'
        )
        sys.exit(2)
    keep_interrupts()
    gc.set_threshold(ALLOCATIONS)
    try:
        from mbcasadi.cli.app import app  # only now: it imports the extra

        app(prog_name="mbcasadi")
    except KeyboardInterrupt:  # outside of a command, such as during imports
        settle()
        sys.stderr.write("mbcasadi: interrupted\n")
        sys.exit(130)
