"""Commands on what was generated and compiled before: `cache info`, `cache clear`, `cache path`."""

import typer

from mbcasadi.cli import console
from mbcasadi.cli.options import AsJson

app = typer.Typer(no_args_is_help=True, help="What was generated and compiled before.")


@app.command()
@console.handle_errors
def info(as_json: AsJson = False) -> None:
    """Print folder, number of entries and size of the cache."""
    from mbcasadi.codegen import cache

    state = cache.info()
    if as_json:
        folder = None if state.folder is None else str(state.folder)
        sizes = {"entries": state.entries, "bytes": state.size, "limit": state.limit}
        console.emit_json({"folder": folder, **sizes})
    else:
        typer.echo(str(state))


@app.command()
@console.handle_errors
def clear(as_json: AsJson = False) -> None:
    """Remove all entries of the cache."""
    from mbcasadi.codegen import cache

    count = cache.clear()
    if as_json:
        console.emit_json({"removed": count})
    else:
        typer.echo(f"entries removed: {count}")


@app.command()
@console.handle_errors
def path() -> None:
    """Print the folder of the cache; nothing where it is switched off."""
    from mbcasadi.codegen import cache

    folder = cache.folder()
    if folder is not None:
        typer.echo(str(folder))
