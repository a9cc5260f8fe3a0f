"""Templates of self-contained HTML pages."""

from typing import TYPE_CHECKING

from mbcasadi.validation.report.extras import require

if TYPE_CHECKING:
    from jinja2 import Template


def page_template(name: str, **functions: object) -> "Template":
    """Return a template that escapes what it is given and raises where a name is missing.

    Args:
        name: file among the report's and the campaign's templates.
        functions: what the template may call.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    require("jinja2", "an HTML report")
    import jinja2

    packages = ("mbcasadi.validation.report", "mbcasadi.validation.campaigns")
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package) for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(functions)
    return environment.get_template(name)
