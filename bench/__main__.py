"""`python -m bench [SUITE]...`: the benchmark suites side by side with their peers."""

from typing import Annotated, cast

import typer

from bench import rows as tables
from bench import suites
from mbcasadi.cli import console
from mbcasadi.cli.console import Output
from mbcasadi.cli.options import command
from mbcasadi.errors import MbcasadiError


@command
def bench(
    output: Output,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUITE]...", help=f"All by default: {suites.suite_list()}."),
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repetitions, for a first look.")] = False,
) -> None:
    """Run the benchmark suites; nothing comes from the cache of compiled C.

    Where one ends early, the rows of the others are printed, and the exit status is 2.
    """
    from mbcasadi.codegen import cache

    runs = [(name, suites.load_suite(name)) for name in names or suites.available_suites()]
    rows: list[suites.BenchmarkRow] = []
    settings: dict[str, dict[str, object]] = {}
    failed: list[str] = []
    with console.progress(output.quiet) as progress, cache.disabled():
        for k, (name, run) in enumerate(runs):
            progress(f"benchmark {name}", k / len(runs))
            try:
                result = run(quick=quick)
            except MbcasadiError as error:
                failed.append(f"benchmark {name}: {error}")
                continue
            rows += cast("list[suites.BenchmarkRow]", result["rows"])
            settings[name] = {key: value for key, value in result.items() if key != "rows"}
    if output.as_json:
        console.emit_json({"rows": rows, "settings": settings})
    else:
        console.stdout().print(tables.benchmark_table(rows))
        for line in tables.setting_lines(settings):
            console.stdout().print(line, markup=False)
    if failed:
        console.fail("; ".join(failed))


if __name__ == "__main__":
    typer.run(bench)
