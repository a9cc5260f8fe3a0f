"""The two files of C of a batch: scalar C99, which is the reference, and vectors of lanes."""

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from mbcasadi.codegen.batches.lane_text import lane_text
from mbcasadi.codegen.casadi_c import generate
from mbcasadi.codegen.controller import HIDDEN, STRICT_ARITHMETIC, VISIBLE
from mbcasadi.codegen.text import template

INCLUDES = "#include <math.h>\n#include <string.h>\n#include <stdlib.h>\n"
PAIRS = """\
#if LANE_BYTES == 64
#define EVERY_PAIR(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
#elif LANE_BYTES == 32
#define EVERY_PAIR(x) {x, x, x, x, x, x, x, x}
#else
#define EVERY_PAIR(x) {x, x, x, x}
#endif
"""


CONSTANTS = (
    "typedef long long int casadi_int;\n#define casadi_inf INFINITY\n#define casadi_nan NAN\n"
)
ENTRY = "casadi_f0(m->arg, m->res, m->iw, m->w, 0)"
ONE_LANE = (
    "\n#define LANES 1\ntypedef real lanes;\nstatic lanes all(double x) { return (lanes)x; }\n"
)


@dataclass(frozen=True)
class Ports:
    """Sizes of what is called.

    Attributes:
        inputs, outputs: nonzeros by name, in order.
        work: pointers to inputs and outputs, integers and numbers that a call needs.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    work: tuple[int, int, int, int]


@dataclass(frozen=True)
class BatchText:
    """The C of a batch.

    Attributes:
        scalar, lanes: the two files.
        scalar_functions: parts of the lanes' file that run in each lane apart.
    """

    scalar: str
    lanes: str
    scalar_functions: tuple[str, ...]


def batch_text(
    function: ca.Function, name: str, real: str, feedback: Mapping[str, str]
) -> BatchText:
    """Return the C of a Function over many states.

    Args:
        function: any one with generated C.
        name: prefix of its symbols.
        real: "double" or "float".
        feedback: output → input that it replaces at the next step.

    Raises:
        ExportError: a part has no generated C, or needs a foreign library.
    """
    scalar = without_loader(generate((function,), f"{name}_scalar", by_hand=False), name)
    pointers = max(function.sz_arg(), function.sz_res())
    inner = lane_text(
        scalar, function, prefix=f"{name}_lane", scalar_prefix=f"{name}_scalar", pointers=pointers
    )
    for symbol in inner.scalar_symbols:
        scalar = scalar.replace(f"static int {symbol}(", f"int {symbol}(")
    head, ports = f"{INCLUDES}{STRICT_ARITHMETIC}typedef {real} real;\n", ports_of(function)
    plain = f"#define casadi_real real\n{HIDDEN}{scalar}{VISIBLE}{ONE_LANE}"
    lanes = f"{CONSTANTS}{lane_runtime(real)}{HIDDEN}{inner.text}{VISIBLE}"
    return BatchText(
        head + plain + run_c(ports, f"{name}_scalar", feedback, ENTRY),
        head + lanes + run_c(ports, f"{name}_lane", feedback, ENTRY),
        inner.scalar_functions,
    )


def without_loader(text: str, name: str) -> str:
    """Return CasADi's text without the functions for its loader, which have the user's name."""
    return text.split(f"CASADI_SYMBOL_EXPORT int {name}(", 1)[0]


def lane_runtime(real: str) -> str:
    """Return types, elementary functions and operations of lanes."""
    floats = real == "float"
    values = {
        "integer": "int32_t" if floats else "int64_t",
        "every_lane": "EVERY_PAIR(x)" if floats else "EVERY_WIDE(x)",
        "each_lane": "EACH_PAIR" if floats else "EACH_WIDE",
        "bytes": 4 if floats else 8,
    }
    elementary = template("lanes_of_floats.c.in" if floats else "lanes_of_doubles.c.in", {})
    return (
        template("lane_types.c.in", values)
        + (PAIRS if floats else "")
        + template("lane_transpose.c.in", values)
        + template(
            "lane_math.c.in", {"sine_kernels": template("sine_kernels.c.in", {"real": "wide"})}
        )
        + template("lane_operations.c.in", {"elementary": elementary})
    )


def ports_of(function: ca.Function) -> Ports:
    """Return the ports of a Function and its work memory."""
    return Ports(
        {name: function.nnz_in(name) for name in function.name_in()},
        {name: function.nnz_out(name) for name in function.name_out()},
        (function.sz_arg(), function.sz_res(), function.sz_iw(), function.sz_w()),
    )


def run_c(ports: Ports, symbol: str, feedback: Mapping[str, str], call: str) -> str:
    """Return the C of the loop over blocks of states.

    Args:
        ports: of what is called.
        symbol: prefix of its functions.
        feedback: output → input that it replaces at the next step.
        call: C expression that evaluates one block and is not 0 where it fails.
    """
    inputs = list(ports.inputs)
    replaced = [inputs.index(feedback[o]) if o in feedback else -1 for o in ports.outputs]
    sz_arg, sz_res, sz_iw, sz_w = ports.work
    return template(
        "batch_run.c.in",
        {
            "symbol": symbol,
            "n_in": len(ports.inputs),
            "n_out": len(ports.outputs),
            "size_in": sum(ports.inputs.values()),
            "size_out": sum(ports.outputs.values()),
            "sizes_in": ", ".join(map(str, ports.inputs.values())) or "0",
            "sizes_out": ", ".join(map(str, ports.outputs.values())) or "0",
            "feedback": ", ".join(map(str, replaced)) or "0",
            "sz_w": sz_w,
            "sz_iw": sz_iw,
            "sz_arg": sz_arg,
            "sz_res": sz_res,
            "call": call,
        },
    )
