"""Functions of CasADi's C with the same text, which become one.

CasADi writes a Function once where it is one object. Functions that are made anew from the same
expressions, the kinematics of two laws for example, have the same text under other names.
"""

import re

FUNCTION = re.compile(
    r"/\* \w+:\(.* \*/\n"
    r"static int (?P<c>casadi_f\d+)(?P<body>\(.*\) \{\n(?:.*\n)*?\}\n)\n?"
)

DEFINE = re.compile(r"#define (casadi_f\d+) .*\n")


def with_equal_functions_once(text: str) -> str:
    """Return CasADi's C where calls of equal functions are calls of the first one."""
    while True:
        first, same = dict[str, str](), dict[str, str]()
        for found in FUNCTION.finditer(text):
            if (name := first.setdefault(found["body"], found["c"])) != found["c"]:
                same[found["c"]] = name
        if not same:
            return text
        text = _replaced(text, same)


def _replaced(text: str, same: dict[str, str]) -> str:
    """Return the text without some functions, and with calls of others in place of theirs."""
    text = FUNCTION.sub(lambda found: "" if found["c"] in same else found[0], text)
    text = DEFINE.sub(lambda found: "" if found[1] in same else found[0], text)
    return re.sub(r"\bcasadi_f\d+\b", lambda found: same.get(found[0], found[0]), text)
