"""Lines of the C that CasADi generates, rewritten for vectors of lanes.

CasADi writes one operation in a line, of a few shapes: `a3=(a1*a2);`, or in a matrix expression
`for (i=0, rr=w3, cr=w1, cs=w2; i<9; ++i) (*rr++)  = (cr[i]&&cs[i]);`. What C has for vectors stays
as it is; the rest becomes a call of `lanes_<operation>`. A line of another shape has no form in
lanes.
"""

import re

RUNTIME = (
    *("copy", "clear", "fill", "mtimes", "mtimes_dense", "mtimes_dense_sparse", "trilsolve", "dot"),
    *("triusolve", "densify", "sparsify", "trans", "project", "norm_1", "norm_2", "norm_inf"),
    *("bilin", "rank1", "kron_dense"),
)
"""Functions of CasADi's runtime whose text holds for lanes; their zeros become vectors."""

VALUE = r"\s*(?:[aw]\d+|\*c[rs]\+\+|\(\*c[rs]\+\+\)|c[rs]\[i\])\s*"
NUMBER = r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|casadi_inf|casadi_nan)"
TARGET = r"(?:[aw]\d+|\*rr\+\+|\(\*rr\+\+\))"
LOOP = r"for \(i=0(?:, \w+=[^,;]+)*; i<\d+; \+\+i\) "

INFIX = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", "&&": "and", "||": "or"}
FUNCTIONS = frozenset(
    (
        *(
            "exp",
            "log",
            "pow",
            "sqrt",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "floor",
        ),
        *("ceil", "fmod", "remainder", "copysign", "erf", "sinh", "cosh", "tanh", "asinh", "acosh"),
        "atanh",
    )
)
CASADI_FUNCTIONS = frozenset(["fabs", "sign", "sq", "fmin", "fmax", "log1p", "expm1", "hypot"])

ASSIGNMENT = re.compile(rf"({LOOP})?({TARGET})\s*(=|\+=|-=|\*=|/=)\s*(.*);")
ARITHMETIC = re.compile(rf"(?:{VALUE}|\({VALUE}[-+*/]{VALUE}\)|\(-{VALUE}\))")
COMPARISON = re.compile(rf"\(({VALUE})(<=|<|==|!=|&&|\|\|)({VALUE})\)")
CONDITIONAL = re.compile(rf"\(({VALUE})\?({VALUE}):0\)")
NEGATION = re.compile(rf"\(!({VALUE})\)")
TWICE = re.compile(rf"\(2\.\*({VALUE})\)")
INVERSE = re.compile(rf"\(1\./({VALUE})\)")
CALL = re.compile(rf"(casadi_)?(\w+)\(({VALUE})(?:,({VALUE}))?\)")
CONSTANT = re.compile(NUMBER)
INPUT = re.compile(r"([aw]\d+)\s*=\s*(arg\[\d+\] ?\? ?arg\[\d+\]\[\d+\]) ?: ?0;")
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
            r"if \(res\[\d+\](?:!=0)?\) res\[\d+\]\[\d+\] ?= ?[aw]\d+;",
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
    if match is None or match[2] not in (CASADI_FUNCTIONS if match[1] else FUNCTIONS):
        return None
    return f"lanes_{match[2]}({','.join(part for part in match.groups()[2:] if part)})"
