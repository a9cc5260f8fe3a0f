"""The command `bench`."""

from typing import Annotated, Any

import typer

from mbcasadi.cli import console, printing, suites
from mbcasadi.cli.options import AsJson


@console.reported
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="Suites; all by default.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repetitions, for a first look.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the suites that `benchmarks` holds."""
    runs = [(name, suites.suite(name)) for name in names or suites.available()]
    rows: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    with console.progress(as_json) as tick:
        for k, (name, run) in enumerate(runs):
            tick(f"benchmark {name}", k / len(runs))
            found = run(quick=quick)
            rows += found["rows"]
            settings[name] = {key: value for key, value in found.items() if key != "rows"}
    if as_json:
        console.emit_json({"rows": rows, "settings": settings})
    else:
        printing.benchmarks(rows, settings, console.screen())
