"""The tables of all types of controllers as a JSON schema, by which editors complete and check."""

from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from mbcasadi.validation.spec.read import TABLES


def json_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a controller's TOML file."""
    every: Any = reduce(or_, TABLES)
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[every, Field(discriminator="type")])
    schema = adapter.json_schema()
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Controller of mbcasadi",
    }
    return heading | schema
