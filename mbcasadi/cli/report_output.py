"""The output of `validate` and `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING

from mbcasadi.cli import console

if TYPE_CHECKING:  # so that `--help` does not import CasADi and MuJoCo
    from mbcasadi.validation import Report


def show_report(report: "Report", saved: Path | None, as_json: bool) -> None:
    """Print a report and exit with status 0 only if all of its criteria are fulfilled."""
    if as_json:
        console.emit_json(report.to_dict() | {"file": None if saved is None else str(saved)})
    else:
        from mbcasadi.validation.report import findings, what_if_table

        screen = console.stdout()
        screen.print(report.table())
        for run in report.runs:
            name = f"{run.name}: " if len(report.runs) > 1 else ""  # the table has that of one run
            for sentence in (*run.notes, *findings(run)):
                screen.print(f"{name}{sentence}", markup=False)
            if run.softness is not None:
                screen.print(f"{name}{run.softness.sentence}", markup=False)
            if run.what_if is not None:
                screen.print(what_if_table(run.what_if, f"{name}cost of delay and errors"))
                screen.print(run.what_if.sentence, markup=False)
        if saved is not None:
            screen.print(f"report: {saved.absolute()}", markup=False, soft_wrap=True)
    console.exit_unless(report.passed)
