"""The sines and cosines of a scalar function, taken together."""

import re

from mbcasadi.codegen.scalar_values import VALUE, Values, depth_first

SINE = re.compile(r"(sin|cos)\(x(\d+)\)")

LEAST_ANGLES = 3
"""From so many on a loop over them is shorter than calls of the C library."""


def with_sines(values: Values, name: str) -> Values:
    """Return the values with one step for all sines of what depends on no sine itself.

    Values keep their meaning, not their numbers. Where there are few sines, all stays as it is.

    Args:
        values: of a function; they have no step yet.
        name: of the C function that takes the sines.
    """
    angles = _angles(values)
    if len(angles) < LEAST_ANGLES:
        return values
    step = len(values.texts)
    texts, operands = [*values.texts, name], [*values.operands, tuple(angles)]
    for value, text in enumerate(values.texts):
        match = SINE.fullmatch(text)
        if match and int(match[2]) in angles:
            array = "sine" if match[1] == "sin" else "cosine"
            texts[value] = f"{array}[{angles[int(match[2])]}]"
            operands[value] = (step,)
    order = depth_first(operands, range(len(operands)), [0] * len(operands))
    number = {value: k for k, value in enumerate(order)}
    outputs = {number[value]: places for value, places in values.outputs.items()}
    joined = Values([], [], outputs, values.inputs, values.sizes, values.checked)
    for value in order:
        text = VALUE.sub(lambda x: f"x{number[int(x[1])]}", texts[value])
        joined.add(text, tuple(number[k] for k in operands[value]))
    joined.steps[number[step]] = _lines(name, [number[value] for value in angles])
    return joined


def _lines(name: str, angles: list[int]) -> list[str]:
    n = len(angles)
    return [
        f"casadi_real angle[{n}], sine[{n}], cosine[{n}];",
        *(f"angle[{k}]=x{value};" for k, value in enumerate(angles)),
        f"{name}(angle, sine, cosine, {n});",
    ]


def _angles(values: Values) -> dict[int, int]:
    """Return the values whose sines are taken that depend on no sine themselves, numbered."""
    late = [False] * len(values.texts)
    angles: dict[int, int] = {}
    for value, text in enumerate(values.texts):
        match = SINE.fullmatch(text)
        late[value] = match is not None or any(late[k] for k in values.operands[value])
        if match and not late[int(match[2])]:
            angles.setdefault(int(match[2]), len(angles))
    return angles
