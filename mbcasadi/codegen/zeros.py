"""The zeros that stand for null inputs in CasADi's C: as many as inputs that may be null need.

A horizon's data are in the controller's memory; zeros of their size would be a third of a library.
"""

import re
from collections import Counter
from math import prod

import casadi as ca

SOLUTION = ("carry", "passed", "x", "lam_a", "active", "flag")
GIVEN = {"_build": ("prepared",), "_finish": ("prepared", *SOLUTION)}
"""Ends of the names of stages, and their inputs that are never null: they are in the memory.

A Function alone has callers of its own.
"""

FUNCTION = re.compile(
    r"/\* (?P<name>\w+):\((?P<inputs>.*?)\)->.*\n"
    r"(?:static )?int (?P<c>\w+)\(.*\) \{\n(?:.*\n)*?\}\n"
)
INPUT = re.compile(r"(?P<name>\w+)(?:\[(?P<size>[^\]]*)\])?")
ARGUMENT = re.compile(r"  arg\d+\[(?P<place>\d+)\]=(?P<value>[^;]*);\n")
CALL = re.compile(
    r"(?P<arguments>(?:  arg\d+\[\d+\]=.*\n)+)(?:  res\d+\[\d+\]=.*\n)*"
    r" *if \((?P<c>casadi_f\d+)\("
)
MEMORY = re.compile(r"w\w*|\(&w\w*\)")
"""An argument in the work memory, or what stands for an input: not null."""

ZEROS = re.compile(r"(static const casadi_real casadi_zeros\[)\d+(\])")


def with_few_zeros(text: str, functions: tuple[ca.Function, ...]) -> str:
    """Return CasADi's C with zeros for those inputs that may be null."""
    stages = {f.name(): _never_null(f) for f in functions if _never_null(f)}
    if len(functions) == 1 or not stages or not ZEROS.search(text):
        return text
    given = _given_by_callers(text)
    needed = [1]

    def known(found: re.Match[str]) -> str:
        body = found[0]
        for i, part in enumerate(INPUT.finditer(found["inputs"])):
            null = f"arg[{i}] ? arg[{i}] : casadi_zeros"
            if part["name"] in stages.get(found["name"], ()) or (found["c"], i) in given:
                body = body.replace(null, f"arg[{i}]")
            elif null in body:
                needed.append(_entries(part["size"] or "1"))
        return body

    text = FUNCTION.sub(known, text)
    return ZEROS.sub(rf"\g<1>{max(needed)}\2", text)


def _never_null(stage: ca.Function) -> set[str]:
    """Return the inputs of a stage that are never null; those of other Functions may be."""
    names = next((own for end, own in GIVEN.items() if stage.name().endswith(end)), ())
    return set(names) & set(stage.name_in())


def _given_by_callers(text: str) -> set[tuple[str, int]]:
    """Return (Function in C, place of an input) that every call in the text gives a value."""
    given, missing, calls = set[tuple[str, int]](), set[tuple[str, int]](), Counter[str]()
    for call in CALL.finditer(text):
        calls[call["c"]] += 1
        for argument in ARGUMENT.finditer(call["arguments"]):
            is_given = MEMORY.fullmatch(argument["value"])
            (given if is_given else missing).add((call["c"], int(argument["place"])))
    all_calls = Counter(re.findall(r"\b(casadi_f\d+)\((?!const)", text))
    return {(c, place) for c, place in given - missing if calls[c] == all_calls[c]}


def _entries(size: str) -> int:
    """Return the numbers of an input: of "7", "3x4" or "3x4,5nz"."""
    shape, _, nonzeros = size.partition(",")
    return int(nonzeros.removesuffix("nz")) if nonzeros else prod(map(int, shape.split("x")))
