"""Check that a version can be released, and print its section of the changelog.

    python .ci/release.py v0.2.0 > notes.md

The tag, pyproject.toml, CITATION.cff and conda/recipe.yaml must have one version, and the changelog
a dated section of it with nothing left under `[Unreleased]`.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION_LINES = {
    "CITATION.cff": r"^version: *(\S+)$",
    "conda/recipe.yaml": r'^ +version: "(\S+)"$',
}
"""Files that repeat the version of pyproject.toml, and how."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each file states.

    Raises:
        ValueError: a file states none.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = {"pyproject.toml": str(project["version"])}
    for name, line in VERSION_LINES.items():
        match = re.search(line, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None:
            raise ValueError(f"{name} states no version; expected a line {line}")
        stated[name] = match[1]
    return stated


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """Return date and text of each version in a changelog; `Unreleased` has the date ""."""
    parts = re.split(r"^## \[([^\]]+)\](.*)$", changelog, flags=re.MULTILINE)[1:]
    return {
        name: (date.removeprefix(" - ").strip(), text.strip())
        for name, date, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def notes(changelog: str, version: str) -> str:
    """Return the text of one version.

    Raises:
        ValueError: there is no section, no date or no text.
    """
    date, text = sections(changelog).get(version, ("", ""))
    if not text or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        raise ValueError(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD` with text")
    return text


def faults(tag: str, root: Path = ROOT) -> list[str]:
    """Return why a tag cannot be released; nothing where it can."""
    version = tag.removeprefix("v")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    reasons = [
        f"{name} has version {stated}, the tag is {tag}; expected v{stated}"
        for name, stated in versions(root).items()
        if tag != f"v{stated}"
    ]
    try:
        notes(changelog, version)
    except ValueError as error:
        reasons.append(str(error))
    if sections(changelog).get("Unreleased", ("", ""))[1]:
        reasons.append(f"CHANGELOG.md has text under [Unreleased]; move it to [{version}]")
    return reasons


def main(tag: str) -> None:
    """Print the notes, or end with what is wrong."""
    if reasons := faults(tag):
        sys.exit("\n".join(reasons))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sys.stdout.write(notes(changelog, tag.removeprefix("v")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
