"""Templates of the files that `init` writes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

NONE: Mapping[str, Callable[[Any], str]] = MappingProxyType({})


def filled_template(
    name: str, values: Mapping[str, object], filters: Mapping[str, Callable[[Any], str]] = NONE
) -> str:
    """Return the text of a template of this folder.

    Args:
        name: of its file.
        values, filters: that it uses, by name.
    """
    import jinja2  # of the extra `tools`

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mbcasadi.validation.spec"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= filters
    return environment.get_template(name).render(values)
