"""A hook of mkdocs: the tutorials as notebooks, for download."""

from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"


def on_post_build(config: Any) -> None:
    """Write each tutorial as `.ipynb` beside its page; mkdocs calls this once."""
    import jupytext

    for path in sorted(TUTORIALS.glob("*.py")):
        target = Path(config["site_dir"]) / "tutorials" / f"{path.stem}.ipynb"
        jupytext.write(jupytext.read(path), target)
