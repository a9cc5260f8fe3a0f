"""The server of a page that shows a model: viser's, which writes nothing to stdout."""

import io
import socket
from contextlib import redirect_stdout
from typing import Any

from mbcasadi.errors import ProblemError
from mbcasadi.extras import optional_module, require_extra

RATE = 30.0  # pictures in a second
HOST, PORT = "127.0.0.1", 8080  # the first port that is tried
PURPOSE = "the viewer in the browser"


def require_browser() -> None:
    """Raise unless a model can be shown in a browser.

    Raises:
        MissingExtraError: viser is not installed.
    """
    require_extra("browser", PURPOSE, "viser")


def url_of(server: Any) -> str:
    """Return the address of a server's page."""
    host = server.get_host()
    return f"http://{'localhost' if host == '0.0.0.0' else host}:{server.get_port()}"


def open_server(host: str, port: int) -> Any:
    """Start a server of viser's.

    Raises:
        ProblemError: no such port or host.
        MissingExtraError: viser is not installed.
    """
    if not 0 <= port < 2**16:
        raise ProblemError(f"port is {port}; expected one from 0 to {2**16 - 1}")
    viser = optional_module("viser", "browser", PURPOSE)
    try:
        socket.create_server((host, 0)).close()
    except (OSError, ValueError) as error:
        raise ProblemError(f"host is {host!r}, where nothing can be served: {error}") from error
    with redirect_stdout(io.StringIO()):  # what viser prints would be in the way of --json
        return viser.ViserServer(host, port, label="mbcasadi", verbose=False)


def close_server(server: Any) -> None:
    """Stop a server of viser's."""
    with redirect_stdout(io.StringIO()):
        server.stop()
