"""The command `margin`."""

from typing import Annotated

import typer

from mbcasadi.cli import console
from mbcasadi.cli.arguments import find_model, parse_numbers, parse_pushes
from mbcasadi.cli.options import (
    AllowCode,
    AsJson,
    Duration,
    Fast,
    Model,
    Perturb,
    Pushes,
    Quiet,
    Rigid,
    SpecFile,
)


@console.handle_errors
def margin(
    model: Model,
    controller: SpecFile,
    over: Annotated[
        str,
        typer.Option(help="Error that grows: mass, friction, …, delay, start_error, disturbance."),
    ],
    largest: Annotated[
        float, typer.Option(help="Size up to which it is searched; negative: below zero.")
    ],
    steps: Annotated[int, typer.Option(min=1, help="Sizes of the scan beside zero.")] = 8,
    tolerance: Annotated[
        float | None, typer.Option(help="Width of the bracket; 1 % of the largest by default.")
    ] = None,
    perturb: Perturb = None,
    push: Pushes = None,
    delay: Annotated[int | None, typer.Option(min=0, help="Ticks.")] = None,
    duration: Duration = None,
    rigid: Rigid = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; the cores by default.")
    ] = None,
    fast: Fast = False,
    allow_code: AllowCode = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Find the size of an error at which a controller's generated C first fails.

    A scan finds the first size that fails, bisection narrows it. The exit status is 0 only if no
    size fails.
    """
    from mbcasadi.validation.spec import read_spec, run_margin

    spec = read_spec(controller, allow_code=allow_code).with_trial(
        duration=duration,
        rigid=rigid,
        delay=delay,
        perturb=parse_numbers(perturb),
        disturbance=parse_pushes(push),
        fast=fast or None,
    )
    with console.progress(quiet) as progress:
        found = run_margin(
            spec,
            find_model(model),
            over,
            largest,
            steps=steps,
            tolerance=tolerance,
            jobs=jobs,
            progress=progress,
        )
    if as_json:
        console.emit_json(found.to_dict())
    else:
        for line in (str(found), *found.notes):
            console.stdout().print(line, markup=False, soft_wrap=True)
    console.exit_unless(found.failure is None)
