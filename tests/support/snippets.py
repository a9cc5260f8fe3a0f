"""Snippets of the pages as a reader meets them: with the package installed, in an empty folder."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.pages import DOCS

README = DOCS.parent / "README.md"
PAGES = (README, *sorted(DOCS.rglob("*.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
CHECKOUT = re.compile(r"^(make |cd tests|python (-m (bench|pytest|robots)|docs/))", re.MULTILINE)
"""Commands that need a checkout, as everyone sees who reads them."""


class Snippet(NamedTuple):
    """A block of code of a page, with the text before it."""

    page: str
    line: int
    language: str
    code: str
    before: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def of_a_checkout(self) -> bool:
        """Whether the paragraph before it, or its commands, say that it needs a checkout."""
        paragraph = self.before.rstrip().rpartition("\n\n")[2]
        return "checkout" in paragraph or bool(CHECKOUT.search(self.code))


def snippets_of(page: Path, *languages: str) -> list[Snippet]:
    """Return the blocks of a page in some languages."""
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(page.name, text.count("\n", 0, m.start()) + 1, m[1], m[2], text[: m.start()])
        for m in FENCE.finditer(text)
        if m[1] in languages
    ]


def faults_of(code: str, names: dict[str, Any]) -> Iterator[str]:
    """Yield what does not exist of what a program takes from the package.

    Args:
        code: of one block.
        names: modules, classes and functions that are known; what the block imports is added.
    """
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] == "mbcasadi":
                    module = importlib.import_module(each.name)
                    names[each.asname or "mbcasadi"] = module
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mbcasadi"):
            module = importlib.import_module(node.module or "")
            for each in node.names:
                if hasattr(module, each.name):
                    names[each.asname or each.name] = getattr(module, each.name)
                else:
                    yield f"{node.module} has no {each.name}"
    for name in [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and is_bound(n)]:
        names.pop(name, None)  # it is something else from here on
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parent = value_of(node.value, names)
            if parent is not None and not hasattr(parent, node.attr):
                yield f"{ast.unparse(node)} does not exist"
        elif isinstance(node, ast.Call):
            yield from wrong_arguments(node, value_of(node.func, names))


def is_bound(name: ast.Name) -> bool:
    """Whether a name gets another value."""
    return isinstance(name.ctx, ast.Store)


def value_of(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the module, class or function that an expression names; None for other things."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        parent = value_of(node.value, names)
        value = getattr(parent, node.attr, None) if inspect.ismodule(parent) else None
        return value if inspect.ismodule(value) or callable(value) else None
    return None


def wrong_arguments(call: ast.Call, function: Any) -> Iterator[str]:
    """Yield why the arguments of a call do not fit a function."""
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if function is None or starred or any(each.arg is None for each in call.keywords):
        return
    if [ast.unparse(each) for each in call.args] == ["..."]:
        return  # a page that shows a name, and leaves out the rest
    try:
        signature = inspect.signature(function)
        signature.bind_partial(*call.args, **{str(each.arg): each for each in call.keywords})
    except TypeError as error:
        yield f"{ast.unparse(call):.80}: {error}"


def texts_of(code: str) -> list[str]:
    """Return the texts of a program."""
    constants = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    return [each.value for each in constants if isinstance(each.value, str)]
