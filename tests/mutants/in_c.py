"""Faults in the templates of the generated C: a list of edits, outside comments and `#` lines.

Templates of other processors and of web pages are not drawn: their tests need tools that may be
missing (`make targets`).
"""

import re
from collections.abc import Iterator

from mutants.fault import Fault, Identities

TEMPLATES = "mbcasadi/codegen/templates/"
SUFFIXES = (".c.in", ".h.in")
COMMENT = re.compile(r"/\*.*?\*/|^[ \t]*#.*?$|\"[^\"\n]*\"", re.DOTALL | re.MULTILINE)

EDITS = (
    ("sign", r" \+ ", " - "),
    ("sign", r" - ", " + "),
    ("sign", r" \+= ", " -= "),
    ("sign", r" -= ", " += "),
    ("factor", r" \* ", " / "),
    ("factor", r" / ", " * "),
    ("factor", r" \*= ", " /= "),
    ("comparison", r" < ", " >= "),
    ("comparison", r" > ", " <= "),
    ("comparison", r" <= ", " > "),
    ("comparison", r" >= ", " < "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("condition", r" && ", " || "),
    ("condition", r" \|\| ", " && "),
    ("condition", r"if \(!", "if ("),
    ("number", r"(?<![\w.@])(\d+)(?![\w.@\]])", lambda found: str(int(found[1]) + 1)),
    ("index", r"\[(\d+)\]", lambda found: f"[{int(found[1]) + 1}]"),
    ("index", r"\[([a-z]\w*)\]", lambda found: f"[{found[1]} - {found[1]}]"),
    ("tolerance", r"\b\d(?:\.\d+)?e-\d+\b", lambda found: repr(1e3 * float(found[0]))),
    ("term", r"(?m)^ *[\w>.\[\]-]+ [-+*]?= [^;{}]+;$", ";"),
    ("loop", r"\bbreak;", "continue;"),
    ("loop", r"\bcontinue;", "break;"),
)


def c_faults(path: str, text: str) -> Iterator[Fault]:
    """Yield all faults of a template."""
    if not (path.startswith(TEMPLATES) and path.endswith(SUFFIXES)) or "/targets/" in path:
        return
    code = COMMENT.sub(lambda found: re.sub(r"[^\n]", "\x00", found[0]), text)
    lines, names = text.splitlines(), Identities(path)
    for number, (kind, pattern, becomes) in enumerate(EDITS):
        for found in re.finditer(pattern, code):
            edit, line = f"{kind} {number}", code.count("\n", 0, found.start())
            new = found.expand(becomes) if isinstance(becomes, str) else becomes(found)
            plant = _planting(*found.span(), new)
            yield Fault(path, kind, edit, line + 1, names.of(edit, lines[line]), plant)


def _planting(start: int, end: int, new: str):
    return lambda text: text[:start] + new + text[end:]
