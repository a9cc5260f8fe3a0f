"""One trial: the two commands of a user, their verdict and their time."""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mbcasadi.errors import MbcasadiError
from mbcasadi.validation.spec.proposal import FALLS
from robots.first_try.packages import name_of
from robots.first_try.variants import write

CONDITIONS = ("--perturb", "mass=0.1", "--delay", "1", "--quiet", "--json")
LONGEST = 1800.0  # s, of one command, on cores that others use too
SHOWN = 240  # characters of a message
WARNS = "warning: "  # begins what `init` says of a file that it writes


@dataclass(frozen=True)
class Trial:
    """What became of a robot.

    Attributes:
        robot: name of its file.
        task: of `init`.
        kind: of the robot, as `describe` has it.
        verdict: "passed", "failed", "refused" by `init`, also where it says that the robot falls,
            "error" of `validate`; "none" where the robot has no such variant.
        why: criteria that were missed and what `init` warned of, or the message.
        seconds: from the file to the verdict.
        variant: of the model; "" for the file itself.
    """

    robot: str
    task: str
    kind: str
    verdict: str
    why: str
    seconds: float
    variant: str = ""


def tried(model: Path, task: str, variant: str = "", *, fast: bool = False) -> Trial:
    """Run `mbcasadi init` and `mbcasadi validate`, perhaps `--fast`, in an empty folder."""
    with TemporaryDirectory() as folder:
        if not variant:
            return _tried(model, task, Path(folder), fast)
        known = Path(folder) / "known.toml"
        if variant == "weak":
            _init(model, task, known)
        try:
            other = write(variant, model, Path(folder), known)
        except (MbcasadiError, AssertionError, OSError, ValueError) as error:
            return Trial(name_of(model), task, "", "none", str(error)[:SHOWN], 0.0, variant)
        return replace(
            _tried(other, task, Path(folder), fast), robot=name_of(model), variant=variant
        )


def _init(model: Path, task: str, spec: Path) -> subprocess.CompletedProcess[str]:
    return _run("init", str(model), "-o", str(spec), *(("--task", task) if task else ()))


def _tried(model: Path, task: str, folder: Path, fast: bool) -> Trial:
    """Run both commands of a model."""
    start = time.perf_counter()
    spec = folder / "spec.toml"
    made = _init(model, task, spec)
    if made.returncode:
        return _trial(model, task, "", "refused", made.stderr, start)
    kind = _kind(spec.read_text())
    lines = [line for line in made.stderr.splitlines() if line.startswith(WARNS)]
    warned = [line.removeprefix(WARNS) for line in lines]
    if FALLS in made.stderr:
        return _trial(model, task, kind, "refused", " ".join(warned), start)
    done = _run(
        "validate", str(model), "-c", str(spec), *CONDITIONS, *(("--fast",) if fast else ())
    )
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1) or not done.stdout.lstrip().startswith("{"):
        return _trial(model, task, kind, "error", done.stderr, start)
    report = json.loads(done.stdout)
    missed = [
        f"{each['metric']} {_number(each['value'])}, limit {_number(each['limit'])}"
        for run in report["runs"]
        for each in run["criteria"]
        if not each["passed"]
    ]
    verdict = "passed" if done.returncode == 0 else "failed"
    why = "; ".join([*missed, *warned])[:SHOWN]
    return Trial(name_of(model), task, kind, verdict, why, seconds)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mbcasadi", *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end after {LONGEST:g} s")


def _trial(model: Path, task: str, kind: str, verdict: str, text: str, start: float) -> Trial:
    lines = [line.strip() for line in text.strip().splitlines() if not line.startswith(WARNS)]
    why = " ".join(lines)[-SHOWN:]
    return Trial(name_of(model), task, kind, verdict, why, time.perf_counter() - start)


def _kind(text: str) -> str:
    """Return the kind of the robot, of the comment that `init` writes."""
    line = next(line for line in text.splitlines() if " base (" in line and ": " in line)
    return line.split(": ", 1)[1].rsplit(", ", 1)[0]


class Store:
    """Trials in a file of JSON lines, so that a run goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.is_file() else []
        self.trials = [Trial(**json.loads(line)) for line in lines if line]

    def has(self, *trial: str) -> bool:
        """Return whether a trial of this robot, task and variant was run."""
        return any((each.robot, each.task, each.variant) == trial for each in self.trials)

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        self.trials.append(trial)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(trial)) + "\n")
