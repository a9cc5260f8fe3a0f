"""Work memory of CasADi's C: no more of it than the text uses.

A Function of matrices has its own vectors in `w` behind the memory that all its callees share.
CasADi counts for the callees what its own interpreter needs: more than its C, and than the loops
that stand in place of some bodies.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import casadi as ca

NAMED = re.compile(
    r"/\* (?P<signature>\w+:\(.*\)) \*/\n(?:static )?int (?P<function>casadi_f\d+)\("
)
FUNCTION = re.compile(
    r"(?P<head>static int (?P<name>casadi_f\d+)\(const casadi_real\*\* arg.*\) \{\n)"
    r"(?P<body>(?:.*\n)*?)\}\n"
)
EXPORTED = re.compile(
    r"int (?P<name>\w+)\(const casadi_real\*\* arg.*\{\n\s*return (?P<function>casadi_f\d+)\("
)
SIZE = r"(?P<head>int {name}_work\((?:.*\n)*?  if \(sz_w\) \*sz_w = )(?P<size>\d+)"
BYTES = r"(?P<head>int {name}_work_bytes\((?:.*\n)*?  if \(sz_w\) \*sz_w = )(?P<size>\d+)"
VECTOR = re.compile(r"\*(?P<name>w\d+)=w(?:\+(?P<place>\d+))?(?=[,;])")
CALL = re.compile(r"(casadi_f\d+)\(\w+(?:\+\d+)?, \w+, \w+, w, \w+\)")
PATTERNS = re.compile(r"\bcasadi_(?:mtimes|project)\(.*, w(?:, \d)?\);")
"""Products and projections of sparse matrices, which need a column."""

PATTERN = re.compile(r"static const casadi_int (casadi_s\d+)\[\d+\] =\s*\{(\d+)(?:, (\d+))?")
ALWAYS_GIVEN = "_preparation"
"""Name's end of the stage whose outputs are never null: they are in the controller's memory."""

USES = 3
"""Of a callee's output that is only copied to a result: its declaration, the call, the copy."""


@lru_cache(maxsize=64)  # asked for often, and a text may have megabytes
def work_size(text: str, name: str) -> int:
    """Return the size of `w` that a Function with this name needs, by CasADi's C."""
    match = re.search(SIZE.format(name=name), text)
    return int(match["size"]) if match else 0


@dataclass(frozen=True)
class _Body:
    """The vectors of a Function in its C: names and places, in the order of memory."""

    text: str

    @cached_property
    def vectors(self) -> dict[str, int]:
        return {found["name"]: int(found["place"] or 0) for found in VECTOR.finditer(self.text)}

    @cached_property
    def first(self) -> int | None:
        """Where its own vectors begin; None where there are none."""
        return min(self.vectors.values(), default=None)

    @cached_property
    def callees(self) -> set[str]:
        return set(CALL.findall(self.text))

    @cached_property
    def is_known(self) -> bool:
        """Whether the text uses `w` for vectors, callees and columns alone."""
        text = self.text
        for each in (VECTOR, CALL, PATTERNS):
            text = each.sub("", text)
        return not re.search(r"\bw\b", text)


def with_small_work(text: str, functions: Sequence[ca.Function]) -> str:
    """Return CasADi's C with less work memory, and with the sizes of it that its Functions tell.

    Args:
        text: of CasADi.
        functions: in it.
    """
    bodies = {found["name"]: _Body(found["body"]) for found in FUNCTION.finditer(text)}
    exported = {found["function"]: found["name"] for found in EXPORTED.finditer(text)}
    columns = {name: max(int(m), int(n or 0)) for name, m, n in PATTERN.findall(text)}
    before = {key: work_size(text, name) for key, name in exported.items()}
    most, known = dict[str, int](), dict[str, list[ca.Function]]()
    inner = [f for function in functions for f in function.find_functions()]
    for each in (*functions, *inner):  # some have one name and different inputs
        signature = str(each).removesuffix(f" {each.class_name()}")
        most[signature] = max(most.get(signature, 0), int(each.sz_w()))
        known.setdefault(signature, []).append(each)
    functions_of = dict[str, list[ca.Function]]()
    for found in NAMED.finditer(text):
        functions_of[found["function"]] = known.get(found["signature"], [])
        if found["signature"] in most and found["function"] not in before:
            before[found["function"]] = most[found["signature"]]
    after, changed = dict[str, int](), dict[str, str]()
    for name, body in bodies.items():
        size = before.get(name, 0)
        changed[name], after[name] = body.text, size
        if not body.is_known or name not in before:
            continue
        used = "".join(found[0] for found in PATTERNS.finditer(body.text))
        shared = [columns[pattern] for pattern in re.findall(r"casadi_s\d+", used)]
        shared += [after[callee] for callee in body.callees]
        after[name] = max(shared, default=0)
        if body.first is not None:
            size = min(size, _end(body, functions_of.get(name, []), size))
            forwards = exported.get(name, "").endswith(ALWAYS_GIVEN)
            changed[name], after[name] = _moved(body, size, after[name], forwards=forwards)
    text = FUNCTION.sub(lambda found: f"{found['head']}{changed[found['name']]}}}\n", text)
    for key, name in exported.items():
        for pattern in (SIZE, BYTES):
            text = re.sub(pattern.format(name=name), rf"\g<head>{after[key]}", text, count=1)
    return text


def _end(body: _Body, functions: Sequence[ca.Function], otherwise: int) -> int:
    """Return where the last vector of a Function ends; CasADi tells more where it keeps no copy.

    Args:
        body: of the Function.
        functions: those that it may be.
        otherwise: what holds where it is not known.
    """
    last = max(body.vectors, key=body.vectors.__getitem__)
    sizes = [_size(function, int(last[1:])) for function in functions]
    return body.vectors[last] + max(sizes) if sizes and all(sizes) else otherwise


@lru_cache(maxsize=256)
def _size(function: ca.Function, place: int) -> int:
    """Return the size of a result of a Function of matrices, by its number; 0 where it has none."""
    size = 0
    for k in range(function.n_instructions() if function.is_a("MXFunction") else 0):
        written = function.instruction_output(k)
        if function.instruction_id(k) == ca.OP_OUTPUT or place not in written:
            continue
        result, i = function.instruction_MX(k), written.index(place)
        if result.is_call():
            size = max(size, int(result.which_function().nnz_out(i)))
        else:
            size = max(size, int((result.get_output(i) if len(written) > 1 else result).nnz()))
    return size


def _moved(body: _Body, end: int, first: int, *, forwards: bool) -> tuple[str, int]:
    """Return the text with its own vectors from `first` on, and where they end.

    Args:
        body: of a Function.
        end: of its vectors until now.
        first: place of the first vector.
        forwards: whether a callee may write to the results in place of a vector.
    """
    text, places = body.text, sorted(body.vectors.values())
    sizes = dict(zip(places, [*places[1:], end], strict=True))
    moved = dict[str, str]()
    for name, place in sorted(body.vectors.items(), key=lambda each: each[1]):
        shorter = _forwarded(text, name) if forwards else None
        if shorter is None:
            moved[name] = f"*{name}=w+{first}" if first else f"*{name}=w"
            first += sizes[place] - place
        else:
            text = shorter
    return VECTOR.sub(lambda found: moved[found["name"]], text), first


def _forwarded(text: str, name: str) -> str | None:
    """Return the text where a callee writes to a result what is only copied there; else None."""
    output = re.search(rf"  (res\d+\[\d+\])={name};\n", text)
    copy = re.search(rf"  if \(res\[\d+\]\) casadi_copy\({name}, \d+, (res\[.*)\);\n", text)
    declared = re.search(rf", \*{name}=w(?:\+\d+)?(?=[,;])", text)
    if not (output and copy and declared) or len(re.findall(rf"\b{name}\b", text)) > USES:
        return None
    text = text.replace(output[0], f"  {output[1]}={copy[1]};\n")
    return text.replace(copy[0], "").replace(declared[0], "")
