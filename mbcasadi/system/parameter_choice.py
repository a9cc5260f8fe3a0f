"""The parameters that patterns name."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from mbcasadi.description.parameters import Parameter, Parameters
from mbcasadi.shapes import require_each
from mbcasadi.system.model_numbers import ModelNumbers
from mbcasadi.system.parameter_attributes import ATTRIBUTES, Attribute
from mbcasadi.unknown_names import unknown_name

WORLD = 0
"""Index of the world, which has no mass."""


def chosen_parameters(
    numbers: ModelNumbers, patterns: Sequence[str], off: Sequence[str]
) -> Parameters:
    """Return the parameters whose names the patterns match, in the order of the patterns.

    Args:
        numbers: of the model.
        patterns: "body:forearm:mass", "body:*:com", "gravity"; `*` and `?` as in a shell.
        off: attributes that a flag of the model switches off.

    Raises:
        UnknownNameError: a pattern matches nothing; the message lists what there is.
    """
    require_each("parameters", patterns, str)
    valid = {item.name: item for item in _possible(numbers) if item.attribute not in off}
    chosen: dict[str, Parameter] = {}
    for pattern in patterns:
        matches = {name: item for name, item in valid.items() if fnmatchcase(name, pattern)}
        if not matches:
            raise unknown_name("parameter", pattern, list(valid))
        chosen |= matches
    return Parameters(tuple(chosen.values()))


def _possible(numbers: ModelNumbers) -> Iterator[Parameter]:
    for attribute in ATTRIBUTES.values():
        for index in range(numbers.count(attribute.kind)):
            if attribute.kind == "body" and index == WORLD:
                continue
            value = attribute.read(numbers, index)
            if value:
                yield _parameter(numbers, attribute, index, value)


def _parameter(
    numbers: ModelNumbers, attribute: Attribute, index: int, value: tuple[float, ...]
) -> Parameter:
    kind = attribute.kind
    element = "" if kind == "option" else f"{kind}:{numbers.element(kind, index).name}:"
    return Parameter(
        name=f"{element}{attribute.name}",
        kind=kind,
        index=index,
        attribute=attribute.name,
        components=attribute.components[: len(value)],
        unit=attribute.unit,
        value=value,
        least=attribute.least,
    )
