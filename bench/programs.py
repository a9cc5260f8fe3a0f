"""Programs that time themselves, run by turns on one core."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def take_turns(
    commands: Sequence[Sequence[str]], turns: int, choose: Callable[..., Any] = np.median
) -> list[dict[str, Any]]:
    """Run the programs one after the other, several times; medians of what each prints, or so."""
    runs = [[measure(command) for command in commands] for _ in range(turns)]
    return [
        {name: choose([run[k][name] for run in runs], axis=0) for name in runs[0][k]}
        for k in range(len(commands))
    ]


def measure(command: Sequence[str]) -> dict[str, Any]:
    """Run a timing program on one core and return what it prints: a value or list by name."""
    process = subprocess.run(
        [*pinned(), *command], check=True, capture_output=True, encoding="utf-8"
    )
    values_by_name: dict[str, Any] = {}
    for line in process.stdout.splitlines():
        name, *values = line.split()
        numbers = [float(value) for value in values]
        values_by_name[name] = numbers[0] if len(numbers) == 1 else numbers
    return values_by_name


def pinned() -> list[str]:
    """Return the beginning of a command that runs on one core, the last one."""
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return ["taskset", "-c", str(core)] if shutil.which("taskset") else []
