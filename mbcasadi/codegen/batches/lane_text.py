"""The C that CasADi generates, as a second file for vectors of lanes.

A scalar Function is written from its operations, one of matrices rewritten line by line. CasADi
writes one operation in a line, of a few shapes, for example
`for (i=0, rr=w3, cr=w1, cs=w2; i<9; ++i) (*rr++)  = (cr[i]&&cs[i]);`. What C has for vectors stays
as it is; the rest becomes a call of `lanes_<operation>`. One that holds a line without a
form in lanes (a branch on a value, a solver) calls its scalar form for each lane, and those around
it stay in lanes.
"""

import re
from dataclasses import dataclass

import casadi as ca

from mbcasadi.codegen.scalar_text.lanes import KNOWN, scalar_lanes
from mbcasadi.codegen.scalar_text.values import of_body, scalar_functions
from mbcasadi.codegen.text import template
from mbcasadi.errors import ExportError

RUNTIME = (
    *("copy", "clear", "fill", "mtimes", "mtimes_dense", "mtimes_dense_sparse", "trilsolve", "dot"),
    *("triusolve", "densify", "sparsify", "trans", "project", "norm_1", "norm_2", "norm_inf"),
    *("bilin", "rank1", "kron_dense"),
)
"""Functions of CasADi's runtime whose text holds for lanes; their zeros become vectors."""

VALUE = r"\s*(?:w\d+|\*c[rs]\+\+|\(\*c[rs]\+\+\)|c[rs]\[i\])\s*"
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|casadi_inf|casadi_nan)"
TARGET = r"(?:w\d+|\*rr\+\+|\(\*rr\+\+\))"
LOOP = r"for \(i=0(?:, \w+=[^,;]+)*; i<\d+; \+\+i\) "

INFIX = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", "&&": "and", "||": "or"}
ASSIGNMENT = re.compile(rf"({LOOP})?({TARGET})\s*(=|\+=|-=|\*=|/=)\s*(.*);")
ARITHMETIC = re.compile(rf"(?:{VALUE}|\({VALUE}[-+*/]{VALUE}\)|\(-{VALUE}\))")
COMPARISON = re.compile(rf"\(({VALUE})(<=|<|==|!=|&&|\|\|)({VALUE})\)")
CONDITIONAL = re.compile(rf"\(({VALUE})\?({VALUE}):0\)")
NEGATION = re.compile(rf"\(!({VALUE})\)")
TWICE = re.compile(rf"\(2\.\*({VALUE})\)")
INVERSE = re.compile(rf"\(1\./({VALUE})\)")
CALL = re.compile(rf"(casadi_)?(\w+)\(({VALUE})(?:,({VALUE}))?\)")
CONSTANT = re.compile(NUMBER)
INPUT = re.compile(r"(w\d+)\s*=\s*(arg\[\d+\] ?\? ?arg\[\d+\]\[\d+\]) ?: ?0;")
FILL = re.compile(rf"casadi_fill\((.*), ({NUMBER})\);")

POINTER = r"(?:\(&w\d+\)|wr?\d+(?:\s?\+\s?i?\*?\d+)?|arg\[\d+\](?:\+\d+)?|res\[\d+\](?:\+\d+)?)"
STRUCTURE = re.compile(
    "|".join(
        (
            r"",
            r"return 0;",
            r"\}",
            r"(?:const )?casadi_(?:int|real)\*? [^=]*;",
            r"(?:const )?casadi_(?:int|real) (?:[*\w, ]|=(?:w|arg|res)\+\d+)*;",
            r"(?:arg|res)1\[\d+\]=.*;",
            r"(?:arg|res)1 = (?:arg|res)\+\d+;",
            r"for \(i=0; i<\d+; \+\+i\) (?:arg|res)1\[i\]=(?:arg|res)\[i\];",
            r"if \((?:arg|res)1\[\d+\]\) (?:arg|res)1\[\d+\]\+=\d+;",
            r"for \(i=0; ?i<\d+; ?\+\+i\) \{",
            r"if \(casadi_f\d+\(arg1, res1, iw, w, 0\)\) return 1;",
            r"if \(res\[\d+\](?:!=0)?\) res\[\d+\]\[\d+\] ?= ?w\d+;",
            rf"(?:if \(res\[\d+\]\) )?casadi_copy\({POINTER}, \d+, {POINTER}\);",
            rf"casadi_clear\({POINTER}, \d+\);",
            rf"(?:w\d+ = )?casadi_(?:{'|'.join(RUNTIME)})\([^;?]*\);",
            r"wr?\d+ = (?:arg\[\d+\] \? arg\[\d+\](?:\+\d+)? : casadi_zeros|casadi_c\d+|"
            r"wr?\d+\[\d+\]|wr\d+\+\d+);",
            r"rr=wr?\d+(?:\+\d+)?;",
            r"for \(i=0(?:, rr=w\d+)?, cs=wr?\d+; i<\d+; \+\+i\) (?:for \(j=0; j<\d+; \+\+j\) )?"
            r"(?:\*rr\+\+|rr\[i\+j\*\d+\]) = \*cs\+\+;",
            r"for \((?:rr=[^,;]+, cs=[^,;]+; cs!=[^;]+; cs\+=\d+|cii=casadi_s\d+, rr=[^,;]+, "
            r"cs=[^,;]+; cii!=casadi_s\d+\+\d+; \+\+cii)\) \*rr\+\+ = (?:\*cs|cs\[\*cii\]);",
        )
    )
)


def in_lanes(line: str) -> str | None:
    """Return the line for lanes; None where it has no such form.

    Args:
        line: of a function's body, without comments and spaces around it.
    """
    if match := INPUT.fullmatch(line):
        return f"{match[1]}={match[2]} : all(0);"
    if match := FILL.fullmatch(line):
        return f"casadi_fill({match[1]}, all({match[2]}));"
    if STRUCTURE.fullmatch(line):
        return line
    match = ASSIGNMENT.fullmatch(line)
    if match is None:
        return None
    value = _value(match[4].strip())
    return None if value is None else f"{match[1] or ''}{match[2]} {match[3]} {value};"


def _value(text: str) -> str | None:
    """Return the right-hand side of an assignment for lanes; None where it has no such form."""
    if ARITHMETIC.fullmatch(text):
        return text
    if CONSTANT.fullmatch(text):
        return f"all({text})"
    if match := COMPARISON.fullmatch(text):
        return f"lanes_{INFIX[match[2]]}({match[1]},{match[3]})"
    for pattern, operation in (
        (CONDITIONAL, "if_zero"),
        (NEGATION, "not"),
        (TWICE, "twice"),
        (INVERSE, "inv"),
    ):
        if match := pattern.fullmatch(text):
            return f"lanes_{operation}({','.join(match.groups())})"
    match = CALL.fullmatch(text)
    if match is None or f"{match[1] or ''}{match[2]}" not in KNOWN:
        return None
    return f"lanes_{match[2]}({','.join(part for part in match.groups()[2:] if part)})"


LANE_FUNCTIONS = ("fabs", "sign", "sq", "fmin", "fmax", "log1p", "expm1", "hypot")
MOST_STACK = 100_000
"""Numbers of one state that a call in the scalar form may copy; they are on the stack."""

BODY = re.compile(
    r"(?P<comment>/\* (?P<name>\w+)[^\n]*\*/)\n"
    r"static int (?P<symbol>casadi_f\d+)\([^\n]*\) \{\n(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
RUNTIME_FUNCTION = re.compile(
    r"^(?:static )?(?:void|int|casadi_int|const casadi_\w+\*|casadi_real) casadi_(?P<name>[a-z]\w*)"
    r"\((?:[^;{]*)\) ?\{(?:[^\n]*\}$|.*?^\}$)",
    re.MULTILINE | re.DOTALL,
)
TABLE = re.compile(
    r"^static const casadi_real (casadi_\w+\[\d+\]) =\s*\{(.*?)\};", re.MULTILINE | re.DOTALL
)
INTEGERS = re.compile(r"^static const casadi_int casadi_s\d+\[\d+\] =\s*\{[^}]*\};", re.MULTILINE)
NAMES = re.compile(r"^#define casadi_(\w+) CASADI_PREFIX\(\w+\)$", re.MULTILINE)
NONZEROS = re.compile(r"\w+(?:\[(\d+)(?:x(\d+))?(?:,(\d+)nz)?\])?")
SIGNATURE = r"(const lanes **arg, lanes **res, casadi_int *iw, lanes *w, int mem)"
ZERO = re.compile(r"(\*[xy]\+\+|casadi_real (?:r|ret)|\bret|w\[\w+(?:\[\w+\])?\]) ?= ?0\.?;")


@dataclass(frozen=True)
class LaneText:
    """The text for lanes.

    Attributes:
        text: C of all functions; the entry is `casadi_f0`.
        scalar_functions: those that run in each lane apart, by CasADi's signature.
        scalar_symbols: their names in the scalar text, which must not be static there.
    """

    text: str
    scalar_functions: tuple[str, ...]
    scalar_symbols: tuple[str, ...]


def lane_text(
    text: str, function: ca.Function, *, prefix: str, scalar_prefix: str, pointers: int
) -> LaneText:
    """Return the C of `casadi_c.generate` for lanes.

    Args:
        text: the scalar C.
        function: that it is generated from.
        prefix, scalar_prefix: of internal symbols, here and in the scalar C.
        pointers: number of pointers that a call of a scalar form has, inputs or outputs.

    Raises:
        ExportError: the text has not the shape of CasADi's C.
    """
    bodies = {match["symbol"]: match for match in BODY.finditer(text)}
    if "casadi_f0" not in bodies:
        raise ExportError(
            "the C of CasADi has no function 'casadi_f0'; expected that of CasADi 3.8"
        )
    parts = [*_names(text, prefix), *INTEGERS.findall(text), *_tables(text)]
    parts += _runtime(text)
    parts += [f"static int {symbol}{SIGNATURE};" for symbol in bodies]
    scalar, known = [], scalar_functions((function,))
    for symbol, match in bodies.items():
        part = of_body(known.get(match["name"], []), match["body"])
        lines = _lanes(match["body"]) if part is None else scalar_lanes(part)
        if lines is None:
            scalar.append(symbol)
            parts.append(_scalar_call(match, scalar_prefix, pointers))
        else:
            parts.append(f"static int {symbol}{SIGNATURE} {{\n(void)mem;\n{lines}\n}}\n")
    signatures = tuple(bodies[symbol]["comment"][2:-2].strip() for symbol in scalar)
    return LaneText("\n".join(parts) + "\n", signatures, tuple(scalar))


def _names(text: str, prefix: str) -> list[str]:
    """Return the names of internal symbols, and lanes for the operations that are functions."""
    operations = {name: f"lanes_{name}" for name in LANE_FUNCTIONS}
    names = [name for name in NAMES.findall(text) if name not in operations]
    names += [name for name in ("copy", "clear", "dot") if name not in names]
    lines = [f"#define casadi_{name} {prefix}_{name}" for name in names]
    lines += [f"#define casadi_{name} {value}" for name, value in operations.items()]
    return [*lines, "#define casadi_real lanes", "#define CASADI_CAST(x, y) ((x)y)"]


def _tables(text: str) -> list[str]:
    """Return the constant arrays, each number in every lane."""
    tables = []
    for name, numbers in TABLE.findall(text):
        entries = ", ".join(f"EVERY_LANE({number.strip()})" for number in numbers.split(","))
        tables.append(f"static const lanes {name} = {{{entries}}};")
    return tables


def _runtime(text: str) -> list[str]:
    functions = []
    for match in RUNTIME_FUNCTION.finditer(text):
        if match["name"] in RUNTIME:
            body = ZERO.sub(lambda zero: f"{zero[1]} = (lanes){{0}};", match[0])
            functions.append(body.replace("sqrt(", "lanes_sqrt("))
    return functions


def _lanes(body: str) -> str | None:
    """Return a body for lanes; None where one of its lines has no such form."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    lines = [in_lanes(line.strip()) for line in body.split("\n")]
    if any(line is None for line in lines):
        return None
    return "\n".join(line for line in lines if line)


def _scalar_call(match: re.Match[str], scalar_prefix: str, pointers: int) -> str:
    inputs, outputs = match["comment"][2:-2].strip().split(":", 1)[1].split("->")
    sizes_in, sizes_out = _sizes(inputs), _sizes(outputs)
    if sum(sizes_in) + sum(sizes_out) > MOST_STACK:
        raise ExportError(
            f"a call of {match['comment'][2:-2].strip()} in each lane copies more than "
            f"{MOST_STACK} numbers; use lanes=False"
        )
    values: dict[str, str | int] = {
        "symbol": match["symbol"],
        "scalar": match["symbol"].replace("casadi", f"{scalar_prefix}_cg", 1),
        "n_in": len(sizes_in),
        "n_out": len(sizes_out),
        "sizes_in": ", ".join(map(str, sizes_in)) or "0",
        "sizes_out": ", ".join(map(str, sizes_out)) or "0",
        "size_in": sum(sizes_in),
        "size_out": sum(sizes_out),
        "sz_arg": pointers,
        "sz_res": pointers,
    }
    return template("lane_scalar_call.c.in", values)


def _sizes(ports: str) -> list[int]:
    """Return the nonzeros of each port of a signature `(q[3],M[3x3,6nz])`."""
    sizes = []
    for port in NONZEROS.finditer(ports):
        rows, columns, nonzeros = (int(n) if n else None for n in port.groups())
        dense = (1 if rows is None else rows) * (1 if columns is None else columns)
        sizes.append(dense if nonzeros is None else nonzeros)
    return sizes
