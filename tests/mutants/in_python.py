"""Faults in Python: operators of cosmic-ray, and two of our own.

A sign, a factor, an index, another number, a comparison, a condition, a loop; a tolerance times a
thousand; a dropped term. Not drawn: text (docstrings, annotations, f-strings, `raise`, `__repr__`),
styling of plots and reports (colors, `STYLING`, `STYLE_ARGUMENTS`), assertions for the type
checker, decorators, and `strict` of `zip`, which checks our own loops. `<` never becomes `<=`: of
real numbers these differ nowhere.
"""

import re
from collections.abc import Iterator

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider

from mutants.fault import Fault, Identities

STYLING = (
    "mbcasadi/plots.py",
    "mbcasadi/short_text.py",
    "mbcasadi/readable_signatures.py",
    "mbcasadi/annotations.py",
    "mbcasadi/validation/report/",
)
STYLE_ARGUMENTS = {"indent", "markup", "strict", "figsize", "fontsize", "dpi", "width", "alpha"}
TEXT = {"fstring", "raise_stmt", "assert_stmt", "decorator", "import_from", "import_name"}
TEXT_FUNCTIONS = {"__repr__", "__str__", "_repr_html_"}
SCIENTIFIC = re.compile(r"[0-9.]+e-?[0-9]+")
CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")


class Thousandfold(Operator):
    """A tolerance times a thousand: a number like 1e-9, or a constant of the module."""

    def mutation_positions(self, node):
        """Yield the place of the number."""
        if node.type == "number" and (SCIENTIFIC.fullmatch(node.value) or _is_constant(node)):
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):  # noqa: ARG002
        """Return the product."""
        return parso.python.tree.Number(repr(1e3 * float(node.value)), node.start_pos, node.prefix)

    @classmethod
    def examples(cls):
        """Return one."""
        return (Example("x = 1e-9", "x = 1e-06"),)


class DroppedTerm(Operator):
    """A sum or difference without its second or a later term."""

    def mutation_positions(self, node):
        """Yield the place of each later term."""
        if node.type == "arith_expr":
            for term in node.children[2::2]:
                yield term.start_pos, term.end_pos

    def mutate(self, node, index):
        """Return the sum without it."""
        place = 2 * index + 1
        del node.children[place : place + 2]
        return node

    @classmethod
    def examples(cls):
        """Return one."""
        return (Example("x = a + b - c", "x = a - c"),)


def _is_constant(number) -> bool:
    statement = number.parent
    while statement is not None and statement.type not in {"expr_stmt", "funcdef", "classdef"}:
        statement = statement.parent
    if statement is None or statement.type != "expr_stmt":
        return False
    of_module = statement.parent.parent.type == "file_input"
    name = statement.children[0].get_code().strip()
    return of_module and "." in number.value and bool(CONSTANT.fullmatch(name))


KINDS = {
    "sign": (
        "ReplaceBinaryOperator_Add_Sub",
        "ReplaceBinaryOperator_Sub_Add",
        "ReplaceUnaryOperator_Delete_USub",
    ),
    "factor": (
        "ReplaceBinaryOperator_Mul_Div",
        "ReplaceBinaryOperator_Div_Mul",
        "ReplaceBinaryOperator_Pow_Mul",
    ),
    "number": ("NumberReplacer",),
    "tolerance": ("Thousandfold",),
    "term": ("DroppedTerm",),
    "comparison": tuple(
        f"ReplaceComparisonOperator_{pair}"
        for pair in (
            *("Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt"),
            *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
        )
    ),
    "condition": (
        *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
        *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    ),
    "loop": ("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
}
OWN = {"Thousandfold": Thousandfold, "DroppedTerm": DroppedTerm}


def operator_of(edit: str) -> Operator:
    """Return an operator by its name."""
    return OWN[edit]() if edit in OWN else OperatorProvider()[edit]()


def python_faults(path: str, text: str) -> Iterator[Fault]:
    """Yield all faults of a file, numbers in brackets as kind "index"."""
    if path.startswith(STYLING):
        return
    nodes, lines, names = list(ast_nodes(get_ast(text))), text.splitlines(), Identities(path)
    for kind, edits in KINDS.items():
        for edit in edits:
            operator, occurrence = operator_of(edit), -1
            for node in nodes:
                for (line, _), _ in operator.mutation_positions(node):
                    occurrence += 1
                    if _is_text(node):
                        continue
                    actual = "index" if kind == "number" and _in_brackets(node) else kind
                    identity = names.of(edit, lines[line - 1])
                    yield Fault(path, actual, edit, line, identity, _planting(edit, occurrence))


def _planting(edit: str, occurrence: int):
    def plant(text: str) -> str | None:
        planted = mutate_code(text, operator_of(edit), occurrence)
        if planted is None or planted == text:
            return None
        try:
            compile(planted, "planted", "exec")
        except SyntaxError:
            return None
        return planted

    return plant


def _is_text(node) -> bool:
    while node is not None:
        first = node.children[0].get_code().strip() if hasattr(node, "children") else ""
        if (
            node.type in TEXT
            or (node.type == "funcdef" and node.name.value in TEXT_FUNCTIONS)
            or (node.type == "argument" and first in STYLE_ARGUMENTS)
            or (node.type == "expr_stmt" and "COLOR" in first)
        ):
            return True
        node = node.parent
    return False


def _in_brackets(node) -> bool:
    while node is not None and node.type not in {"arglist", "funcdef", "simple_stmt"}:
        if node.type == "trailer":
            return node.children[0].value == "["
        node = node.parent
    return False
