"""Runs as a table, as JSON and as one self-contained page."""

import json
import math
import platform
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mbcasadi.errors import ProblemError
from mbcasadi.validation.findings import findings
from mbcasadi.validation.run import Run


@dataclass(frozen=True)
class Report:
    """One or several runs.

    Attributes:
        runs: in the order of the report.
        title: heading.
    """

    runs: tuple[Run, ...]
    title: str = "Closed-loop validation"

    @property
    def passed(self) -> bool:
        """Whether every criterion of every run held."""
        return all(run.passed for run in self.runs)

    def __add__(self, other: "Report") -> "Report":
        """Return one report with the runs of both."""
        return Report(self.runs + other.runs, self.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold; NaN and infinity become None."""
        found: dict[str, Any] = plain(
            {
                "title": self.title,
                "passed": self.passed,
                "versions": versions(),
                "runs": [run.to_dict() for run in self.runs],
            }
        )
        return found

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """Return the report as one page that needs no other file.

        Raises:
            MissingExtraError: jinja2 or matplotlib is not installed.
        """
        from mbcasadi.validation.page import page

        return page(self)

    def save(self, path: str | Path) -> Path:
        """Write the report as `.json` or `.html`; return the path.

        Raises:
            ProblemError: another suffix.
            MissingExtraError: an HTML page needs jinja2 and matplotlib.
        """
        target = Path(path)
        if target.suffix not in {".json", ".html"}:
            raise ProblemError(f"{target}: a report is saved as .json or .html")
        text = self.to_json() if target.suffix == ".json" else self.to_html()
        target.write_text(text, encoding="utf-8")
        return target

    def table(self) -> Any:
        """Return the criteria of all runs as a `rich` table, to be printed.

        Raises:
            MissingExtraError: rich is not installed.
        """
        from mbcasadi.validation.table import criteria_table

        return criteria_table(self)

    def __str__(self) -> str:
        lines = [f"{self.title}: {'passed' if self.passed else 'FAILED'}"]
        for run in self.runs:
            lines += [f"  {run.name}: {'passed' if run.passed else 'FAILED'}"]
            for v in run.verdicts:
                sign = ">=" if v.at_least else "<="
                mark = "ok  " if v.passed else "FAIL"
                lines.append(f"    {mark} {v.metric} = {v.value:.4g} {sign} {v.limit:.4g}")
            lines += [f"    {sentence}" for sentence in findings(run)]
            if run.what_if is not None:
                lines += [f"    {line}" for line in str(run.what_if).splitlines()]
        return "\n".join(lines)


def versions() -> dict[str, str]:
    """Return the versions that a report was made with."""
    names = ("mbcasadi", "casadi", "mujoco", "numpy")
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # run from a source tree
            found[name] = "not installed"
    return found


def plain(data: Any) -> Any:
    """Return `data` in the types of JSON; NaN and infinity become None."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return plain(data.tolist())
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data
