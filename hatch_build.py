"""The long description of the package: README.md, whose relative links lead nowhere on an index."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s]+)\)")
"""A picture or a link to a file of the repository: mark, text, path."""


class LongDescription(MetadataHookInterface):
    """Sets `readme`, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the long description, with links to the source where `urls` has its address."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": long_description(text, source),
        }


def long_description(text: str, source: str = "") -> str:
    """Return a README whose links hold everywhere.

    Args:
        text: with links relative to the root of the repository.
        source: address of the root; without one, links become text and pictures are left out.
    """

    def absolute(match: re.Match[str]) -> str:
        mark, label, path = match.groups()
        if source:
            kind = "raw" if mark else "blob"
            return f"{mark}[{label}]({source.rstrip('/')}/{kind}/main/{path})"
        return "" if mark else label

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(absolute, text))
