"""What moves a motion in a browser: a slider of time, and a switch that plays it."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from mbcasadi.errors import ProblemError
from mbcasadi.plant.browser_scene import BrowserScene, set_camera
from mbcasadi.plant.browser_server import RATE, close_server
from mbcasadi.plant.mocap import POSE, POSITION
from mbcasadi.plant.motion_paths import motion_paths
from mbcasadi.plant.scene import fitted_camera

Array = NDArray[np.float64]
Plans = tuple[tuple[float, Array], ...]
"""Plans of an MPC: from which time each one acts, s, and its configurations (N + 1, nq)."""

NO_PATHS = (np.zeros((0, 0, 3)), np.zeros((0, 0, 3)))


@dataclass(frozen=True)
class RecordedMotion:
    """What `browse` plays; nt moments.

    Attributes:
        t: (nt,) s, not decreasing.
        q: (nt, nq) configurations.
        mocap: (nt, 7 nmocap) poses of mocap bodies.
        state: field of MuJoCo's data → (nt, n) rows, from which contact forces follow; these are
            shown where there are any.
        plans: of an MPC.
    """

    t: Array
    q: Array
    mocap: Array
    state: Mapping[str, Array] = field(default_factory=dict)
    plans: Plans = ()


class BrowserPlayer:
    """A motion that a server shows, with a slider of time; it plays in a thread of its own.

    Attributes:
        server: viser's.
        scene: what it shows.
    """

    def __init__(self, model: mujoco.MjModel, motion: RecordedMotion, server: Any) -> None:
        """Show the start of a motion of a model, which `shown_model` returned."""
        self._model, self._motion, self.server = model, motion, server
        self._data, self._lock = mujoco.MjData(model), threading.RLock()
        self._closed = threading.Event()
        self.scene = BrowserScene(server, model)
        self._paths = [motion_paths(model, q) for _, q in motion.plans]
        first, last = float(motion.t[0]), float(motion.t[-1])
        gui = server.gui
        self._slider = gui.add_slider(
            "time, s", first, max(last, first + 1e-3), step=1e-3, initial_value=first
        )
        self._playing = gui.add_checkbox("play", initial_value=False)
        self._speed = gui.add_slider("speed", 0.05, 2.0, step=0.05, initial_value=1.0)
        self._slider.on_update(lambda _: self._draw(float(self._slider.value)))
        self._offer_layers()
        set_camera(server, fitted_camera(model, motion.q, 1.5))
        self._draw(first)
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def show(self, t: float) -> None:
        """Show a moment; see `BrowserView.show`."""
        first, last = self._motion.t[0], self._motion.t[-1]
        if not first <= t <= last:
            raise ProblemError(f"t is {t}; expected a time from {first:g} to {last:g} s")
        if self._closed.is_set():
            raise ProblemError("the view is closed; expected one that `browse` has just returned")
        self._slider.value = t  # which draws it

    def wait(self) -> None:
        """Return when the player is closed; Ctrl-C closes it."""
        try:
            while not self._closed.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server; a player that is closed stays so."""
        if not self._closed.is_set():
            self._closed.set()
            self._thread.join()
            close_server(self.server)

    def _offer_layers(self) -> None:
        """Add a switch for each layer that the motion has."""
        scene = self.scene
        layers: dict[str, tuple[Any, ...]] = {}
        if self._motion.state:
            layers |= {"contact forces": (scene.arrows,), "friction cones": (scene.cones,)}
        if self._motion.plans:
            layers["plans"] = scene.paths
        for name, handles in layers.items():
            switch = self.server.gui.add_checkbox(name, initial_value=True)

            def change(_: Any, switch: Any = switch, handles: tuple[Any, ...] = handles) -> None:
                for handle in handles:
                    handle.visible = switch.value

            switch.on_update(change)

    def _draw(self, t: float) -> None:
        """Show the moment at a time, and the plan that acts then."""
        motion, data = self._motion, self._data
        k = max(int(np.searchsorted(motion.t, t, side="right")) - 1, 0)
        acting = [n for n, (start, _) in enumerate(motion.plans) if start <= t]
        with self._lock:
            data.time, data.qpos[:] = motion.t[k], motion.q[k]
            poses = motion.mocap[k].reshape(-1, POSE)
            data.mocap_pos[:], data.mocap_quat[:] = poses[:, :POSITION], poses[:, POSITION:]
            for name, rows in motion.state.items():
                getattr(data, name)[:] = rows[k]
            mujoco.mj_forward(self._model, data)
            self.scene.show(data, forces=bool(motion.state))
            self.scene.show_paths(self._paths[acting[-1]] if acting else NO_PATHS)

    def _play(self) -> None:
        """Move on in time while the page plays, again from the start at the end."""
        while not self._closed.wait(1 / RATE):
            if self._playing.value:
                t = float(self._slider.value) + float(self._speed.value) / RATE
                self._slider.value = t if t <= self._motion.t[-1] else float(self._motion.t[0])
