"""CasADi's C without what compilers and checkers remark on.

Conditions are comparisons, not numbers; sizes of memory are unsigned; parameters that a function
does not use say so. The operations are the same.
"""

import re

OPERAND = r"\w+(?:\[[^\][]*\])?|\(\*\w+\+\+\)|\*\w+\+\+"
NOT = re.compile(rf"\(!\s*({OPERAND})\s*\)")
BOTH = re.compile(rf"\(({OPERAND})(&&|\|\|)({OPERAND})\)")
CHOICE = re.compile(rf"\(({OPERAND})\?")
BYTES = re.compile(r"((?:memcpy|memset)\([^;]*?, )(\w+)( \* sizeof )")
SINGLE = re.compile(
    r"for \(rr=\(&(?P<to>\w+)\), cs=(?P<of>\w+)\+(?P<first>\d+); "
    r"cs!=(?P=of)\+(?P<end>\d+); cs\+=1\) \*rr\+\+ = \*cs;"
)
"""A loop that copies some numbers to a variable: one, where the numbers are scalars."""

FUNCTION = re.compile(
    r"^(?P<head>(?:static )?[\w ]+\*? ?\w+\((?P<parameters>[^;{}()]+)\) ?\{)\n"
    r"(?P<body>(?:.*\n)*?)^\}\n",
    re.MULTILINE,
)
PARAMETER = re.compile(r"(\w+)\s*(?:\[\])?$")


def with_strict_text(text: str) -> str:
    """Return C of CasADi that compiles without a warning."""
    text = SINGLE.sub(_assignment, text)
    text = NOT.sub(r"(\1==0)", text)
    text = BOTH.sub(r"((\1!=0)\2(\3!=0))", text)
    text = CHOICE.sub(r"(\1!=0?", text)
    text = BYTES.sub(r"\1(size_t)\2\3", text)
    return FUNCTION.sub(_with_used_parameters, text)


def _assignment(found: re.Match[str]) -> str:
    first, end = int(found["first"]), int(found["end"])
    return f"{found['to']} = {found['of']}[{first}];" if end == first + 1 else found[0]


def _with_used_parameters(found: re.Match[str]) -> str:
    names = [
        match[1] for part in found["parameters"].split(",") if (match := PARAMETER.search(part))
    ]
    used = set(re.findall(r"\w+", found["body"]))
    unused = [name for name in names if name not in used and name != "void"]
    lines = "".join(f"  (void){name};\n" for name in unused)
    return f"{found['head']}\n{lines}{found['body']}}}\n"
