"""A hook of mkdocs: the tutorials as notebooks, for download; their links as links of the site."""

import re
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"
SOURCE = re.compile(r'href="(?![\w+]+:|[#/])([^"#]+)\.(?:md|py)(#[^"]*)?"')


def on_page_content(html: str, page: Any, **_: object) -> str:
    """Return a tutorial with links to pages in place of those to their sources.

    mkdocs does so for Markdown. A page `tutorials/x.py` is the folder `tutorials/x/` of the site.
    """
    if not page.file.src_uri.startswith("tutorials/") or not page.file.src_uri.endswith(".py"):
        return html
    return SOURCE.sub(lambda link: f'href="../{link[1]}/{link[2] or ""}"', html)


def on_post_build(config: Any) -> None:
    """Write each tutorial as `.ipynb` beside its page; mkdocs calls this once."""
    import jupytext

    for path in sorted(TUTORIALS.glob("*.py")):
        target = Path(config["site_dir"]) / "tutorials" / f"{path.stem}.ipynb"
        jupytext.write(jupytext.read(path), target)
