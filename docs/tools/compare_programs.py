"""Run the programs of a page of docs/coming-from, and print how far their answers are apart.

    python docs/tools/compare_programs.py docs/coming-from/drake.md

Each block ```` ```py ```` is a program for another library, all blocks ```` ```python ```` together
are ours; the block behind each is what it prints. Programs run in processes of their own, since two
libraries in one process may bring two versions of a third one.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"```(py|python)\n((?:(?!```).)*)```\n\n```(?:text)?\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"(?<!\w)[-+]?\d+\.\d*(?:e[-+]?\d+)?")
HEADER = "import warnings\nwarnings.simplefilter('ignore')\n"


def programs(page: Path) -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """Return our program, and those for other libraries, each with the output that is shown."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    mine = [(code, shown) for kind, code, shown in blocks if kind == "python"]
    ours = "\n".join(code for code, _ in mine), "".join(shown for _, shown in mine)
    return ours, [(code, shown) for kind, code, shown in blocks if kind == "py"]


def printed_by(code: str, robots: Path) -> str:
    """Return what a program prints in a folder with the robots of `robots`."""
    with tempfile.TemporaryDirectory() as folder:
        for robot in robots.glob("*.urdf"):
            shutil.copy(robot, folder)
        program = Path(folder) / "program.py"
        program.write_text(HEADER + code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, program.name], cwd=folder, capture_output=True, text=True, check=False
        )
    if "ModuleNotFoundError" in done.stderr:
        raise ModuleNotFoundError(done.stderr.splitlines()[-1])
    if done.returncode:
        raise SystemExit(f"the program failed:\n{done.stderr}")
    return done.stdout


def largest_difference(theirs: str, ours: str) -> float:
    """Return the largest difference of the decimal numbers of two texts, in their order."""
    pairs = zip(NUMBER.findall(theirs), NUMBER.findall(ours), strict=True)
    return max(abs(float(a) - float(b)) for a, b in pairs)


def main(page: Path) -> None:
    """Run the programs of a page, print their outputs and the largest differences."""
    (code, _), others = programs(page)
    ours = printed_by(code, page.parent)
    print(f"ours:\n{ours}")
    for code, _ in others:
        try:
            theirs = printed_by(code, page.parent)
        except ModuleNotFoundError as missing:
            print(f"left out: {missing}")
            continue
        print(f"theirs:\n{theirs}")
        print(f"largest difference of printed numbers: {largest_difference(theirs, ours):.1g}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
