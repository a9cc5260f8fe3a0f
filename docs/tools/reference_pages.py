"""A hook of mkdocs: references of packages by their public names.

A line `public: PACKAGE` becomes a table of the functions and classes in the package's `__all__` and
`NOT_STARRED`, and each of them gets a page of its own, rendered where it is defined; the package
itself would not show functions that have the name of their module, such as
`mbcasadi.formulation.projection`. A line `summary: PACKAGE` becomes such a table without pages.

One entry of a docstring for several attributes, "kp, kd: gains", is read as an attribute "kp," of
the type "kd"; its row gets all names back.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CONTENT = "::: {}\n    options:\n      heading_level: 1\n"
LINE = re.compile(r"^(public|summary): ([\w.]+)$", re.MULTILINE)
SEVERAL = re.compile(
    r"<td><code>(?:<[^>]*>)?([\w.]+,)(?:<[^>]*>)?</code></td>\s*<td>\s*<code>(.*?)</code>\s*</td>",
    re.DOTALL,
)
TAG = re.compile(r"<[^>]*>")
PAGES = Path(__file__).resolve().parents[1] / "reference"
PACKAGES = {match[2] for page in PAGES.glob("*.md") for match in LINE.finditer(page.read_text())}


def public_paths(package: ModuleType) -> dict[str, str]:
    """Return the path of the definition of each public function and class, by name."""
    names = [*package.__all__, *getattr(package, "NOT_STARRED", ())]
    values = {name: getattr(package, name) for name in sorted(names, key=str.lower)}
    return {
        name: f"{value.__module__}.{value.__qualname__}"
        for name, value in values.items()
        if inspect.isfunction(value) or inspect.isclass(value)
    }


def first_line(value: object) -> str:
    """Return the first sentence of a docstring, in one line of a table."""
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", r"\|")


def owned(package: str, path: str, name: str) -> bool:
    """Return whether the page of a name is this package's, or that of one inside it."""
    parts = path.split(".")
    owners = {".".join(parts[:i]) for i in range(2, len(parts))} & PACKAGES
    return package in owners or not any(name in importlib.import_module(o).__all__ for o in owners)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each public function and class; mkdocs calls this once."""
    for page in sorted(PAGES.glob("*.md")):
        for kind, package in LINE.findall(page.read_text(encoding="utf-8")):
            for name, path in public_paths(importlib.import_module(package)).items():
                if kind == "public" and owned(package, path, name):
                    uri = f"reference/{page.stem}/{name}.md"
                    files.append(File.generated(config, uri, content=CONTENT.format(path)))
    return files


def render(match: re.Match[str], page: str) -> str:
    """Return the Markdown of one line: a table of names with links to their pages."""
    kind, package = match[1], importlib.import_module(match[2])
    rows = ["| name | |", "| --- | --- |"]
    for name, path in public_paths(package).items():
        here = kind == "public" and owned(match[2], path, name)
        link = f"({page}/{name}.md)" if here else f"[{path}]"
        rows.append(f"| [`{name}`]{link} | {first_line(getattr(package, name))} |")
    heading = [inspect.getdoc(package) or "", ""] if kind == "public" else []
    return "\n".join([*heading, *rows])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page with its references; mkdocs calls this for each page."""
    return LINE.sub(lambda match: render(match, Path(page.file.src_uri).stem), markdown)


def all_names(match: re.Match[str]) -> str:
    """Return the cells of an entry for several attributes: their names, no type."""
    return f"<td><code>{match[1]} {TAG.sub('', match[2])}</code></td><td></td>"


def on_page_content(html: str, **_: object) -> str:
    """Return the page with the names of entries for several attributes."""
    return SEVERAL.sub(all_names, html)
