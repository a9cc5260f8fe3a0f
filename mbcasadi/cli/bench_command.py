"""The command `bench`."""

from typing import Annotated, cast

import typer

from mbcasadi.cli import console, suites, tables
from mbcasadi.cli.options import AsJson, Quiet
from mbcasadi.errors import MbcasadiError


@console.handle_errors
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SUITE]...", help="Suites; all by default.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repetitions, for a first look.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the benchmark suites; nothing comes from the cache of compiled C.

    Where one ends early, the rows of the others are printed, and the exit status is 2.
    """
    from mbcasadi.codegen import cache

    runs = [(name, suites.load_suite(name)) for name in names or suites.available_suites()]
    rows: list[suites.BenchmarkRow] = []
    settings: dict[str, dict[str, object]] = {}
    failed: list[str] = []
    with console.progress(quiet) as progress, cache.disabled():
        for k, (name, run) in enumerate(runs):
            progress(f"benchmark {name}", k / len(runs))
            try:
                result = run(quick=quick)
            except MbcasadiError as error:
                failed.append(f"benchmark {name}: {error}")
                continue
            rows += cast("list[suites.BenchmarkRow]", result["rows"])
            settings[name] = {key: value for key, value in result.items() if key != "rows"}
    if as_json:
        console.emit_json({"rows": rows, "settings": settings})
    else:
        console.stdout().print(tables.benchmark_table(rows))
        for line in tables.setting_lines(settings):
            console.stdout().print(line, markup=False)
    if failed:
        console.fail("; ".join(failed))
