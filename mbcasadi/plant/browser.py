"""A motion or a live run in a browser, where no screen is needed."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import mujoco
from numpy.typing import ArrayLike

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import ShapeError
from mbcasadi.plant.api import Source, compile_model
from mbcasadi.plant.browser_player import BrowserPlayer, RecordedMotion
from mbcasadi.plant.browser_scene import BrowserScene, set_camera
from mbcasadi.plant.browser_server import HOST, PORT, RATE, close_server, open_server, url_of
from mbcasadi.plant.mocap import mocap_rows
from mbcasadi.plant.scene import fitted_camera, shown_model
from mbcasadi.plant.video import require_rows

PATIENCE = 60.0  # s that a live run waits for a page


@dataclass(frozen=True, repr=False)
class BrowserView:
    """A motion in a browser, with a slider of time; a context that closes it at its end.

    `browse` makes it. The page plays by itself; `show` moves it to another time.
    """

    _player: BrowserPlayer

    def __repr__(self) -> str:
        return f"BrowserView({self.url!r})"

    def __enter__(self) -> "BrowserView":
        return self

    def __exit__(
        self, _: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Address of the page."""
        return url_of(self._player.server)

    @checked
    def show(self, t: float) -> None:
        """Show the last moment of the motion that is not later than a time, s.

        Raises:
            ProblemError: the time is outside the motion, or the view is closed.
        """
        self._player.show(t)

    def wait(self) -> None:
        """Return when the view is closed; Ctrl-C closes it."""
        self._player.wait()

    def close(self) -> None:
        """Stop the server; a view that is closed stays so."""
        self._player.close()


@checked
def browse(
    model: Source,
    t: ArrayLike,
    q: ArrayLike,
    *,
    mocap: ArrayLike | None = None,
    host: str = HOST,
    port: int = PORT,
) -> BrowserView:
    """Show a motion in a browser, with a slider of time; no screen is needed.

    `browse("arm.xml", trajectory.t, trajectory.q).wait()` in a script shows what `simulate`
    returned until Ctrl-C. `Run.browse` shows a validated run with its contact forces and plans.

    Args:
        model: of the scene; geoms as in `draw_frames`, without textures.
        t: (nt,) s, not decreasing.
        q: (nt, nq) configurations.
        mocap: (nt, 7 nmocap) poses of mocap bodies; those of the model by default.
        host: address that is served; "0.0.0.0" serves all machines that reach this one.
        port: the first that is tried, the next ones if it is taken; 0 for any.

    Returns:
        The view; its `url` is the page, `close` stops it.

    Raises:
        ProblemError, ShapeError: t, q and mocap do not fit together, or to the model; no such
            port.
        MissingExtraError: viser is not installed.
    """
    compiled = compile_model(model)
    times, poses = require_rows(compiled, t, q)
    motion = RecordedMotion(times, poses, mocap_rows(compiled, mocap, times.size))
    return browse_motion(compiled, motion, host, port)


def browse_motion(
    model: mujoco.MjModel, motion: RecordedMotion, host: str, port: int
) -> BrowserView:
    """Show a motion in a browser; see `browse`.

    Raises:
        ProblemError: no such port or host.
        ShapeError: a state that does not fit the model.
        MissingExtraError: viser is not installed.
    """
    data = mujoco.MjData(model)
    for name, rows in motion.state.items():
        if rows.shape != (len(motion.t), getattr(data, name).size):
            raise ShapeError(
                f"{name} of the motion has shape {rows.shape}, expected "
                f"({len(motion.t)}, {getattr(data, name).size})"
            )
    return BrowserView(BrowserPlayer(shown_model(model), motion, open_server(host, port)))


@contextmanager
def live_browser(
    model: mujoco.MjModel, data: mujoco.MjData, port: int = PORT, patience: float = PATIENCE
) -> Iterator[Any]:
    """Serve a run; yield a function that shows the present state, at most in real time.

    The address is written to stderr. The run waits until a page is open.

    Args:
        model, data: of the run.
        port: the first that is tried.
        patience: s, after which the run begins without a page.

    Raises:
        MissingExtraError: viser is not installed.
    """
    server = open_server(HOST, port)
    try:
        shown = shown_model(model)
        scene, copied = BrowserScene(server, shown), mujoco.MjData(shown)
        set_camera(server, fitted_camera(shown, data.qpos[None, :], 1.5))
        _copy_and_show(scene, copied, data)
        sys.stderr.write(f"open {url_of(server)} to see the run; it waits {patience:g} s\n")
        _await_page(server, patience)
        begin, next_picture = time.monotonic() - data.time, 0.0

        def show(_: mujoco.MjModel, current: mujoco.MjData) -> None:
            nonlocal next_picture
            if current.time < next_picture:
                return
            next_picture = current.time + 1 / RATE
            _copy_and_show(scene, copied, current)
            time.sleep(max(0.0, begin + current.time - time.monotonic()))

        yield show
    finally:
        close_server(server)


def _await_page(server: Any, patience: float) -> None:
    """Return when a page is open, or patience is at its end."""
    end = time.monotonic() + patience
    while not server.get_clients() and time.monotonic() < end:
        time.sleep(0.05)


def _copy_and_show(scene: BrowserScene, copied: mujoco.MjData, data: mujoco.MjData) -> None:
    """Show data, whose forces are evaluated on a copy."""
    mujoco.mj_copyData(copied, scene.model, data)
    mujoco.mj_forward(scene.model, copied)
    scene.show(copied)
