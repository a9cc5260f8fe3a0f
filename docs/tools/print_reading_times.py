"""Print what reading models and building M, h and the rows takes, as a table in Markdown.

    python docs/tools/print_reading_times.py MODEL.xml ...

CPU seconds of this process, the least of three, after the package has been imported. MuJoCo's own
compiler is listed beside them.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import process_time

import mujoco

import mbcasadi as mb

REPETITIONS = 3
MEMBERS = ("mass_matrix", "bias_force", "constraint_jacobian", "constraint_bias")


def least_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the fastest repetition."""
    seconds = []
    for _ in range(REPETITIONS):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return min(seconds)


def build(model: mujoco.MjModel) -> mb.System:
    """Return the system of a model, with M, h and the rows built."""
    system = mb.read_mjcf(model)
    for name in MEMBERS:
        system.member(name)
    return system


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    print("| model | dof | rows | MuJoCo's compiler, s | reading, M, h, rows, s |")
    print("|---|---|---|---|---|")
    for path in parser.parse_args().models:
        compiling = least_seconds(lambda path=path: mujoco.MjModel.from_xml_path(str(path)))
        model = mujoco.MjModel.from_xml_path(str(path))
        system = build(model)  # imports what is imported on first use
        building = least_seconds(lambda model=model: build(model))
        print(f"| {path.stem} | {system.nv} | {system.nc} | {compiling:.2f} | {building:.2f} |")


if __name__ == "__main__":
    main()
