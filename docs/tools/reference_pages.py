"""A hook of mkdocs: references of packages by their public names.

A line `public: PACKAGE` becomes the reference of each function and class in the package's
`__all__` and `NOT_STARRED`, rendered where it is defined; the package itself would not show
functions that have the name of their module, such as `mbcasadi.formulation.projection`. A line
`summary: PACKAGE` becomes a table of these names with links.

One entry of a docstring for several attributes, "kp, kd: gains", is read as an attribute "kp," of
the type "kd"; its row gets all names back.
"""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

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


def entry(package: str, name: str, path: str) -> str:
    """Return the reference of a name, or a link where its own package exports it too."""
    parts = path.split(".")
    owners = {".".join(parts[:i]) for i in range(2, len(parts))} & PACKAGES
    exported = any(name in importlib.import_module(owner).__all__ for owner in owners)
    return f"`{name}`: [{path}][]" if exported and package not in owners else f"::: {path}"


def render(match: re.Match[str]) -> str:
    """Return the Markdown of one line."""
    kind, package = match[1], importlib.import_module(match[2])
    paths = public_paths(package)
    if kind == "public":
        return "\n\n".join(
            [inspect.getdoc(package) or "", *(entry(match[2], n, p) for n, p in paths.items())]
        )
    rows = [f"| [{n}][{p}] | {first_line(getattr(package, n))} |" for n, p in paths.items()]
    return "\n".join(["| name | |", "| --- | --- |", *rows])


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with its references; mkdocs calls this for each page."""
    return LINE.sub(render, markdown)


def all_names(match: re.Match[str]) -> str:
    """Return the cells of an entry for several attributes: their names, no type."""
    return f"<td><code>{match[1]} {TAG.sub('', match[2])}</code></td><td></td>"


def on_page_content(html: str, **_: object) -> str:
    """Return the page with the names of entries for several attributes."""
    return SEVERAL.sub(all_names, html)
