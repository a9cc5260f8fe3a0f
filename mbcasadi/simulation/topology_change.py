"""Switching of rows: the gap that may be closed, the velocity jump, the energy that it costs."""

import numpy as np

from mbcasadi.errors import SimulationError
from mbcasadi.shapes import column
from mbcasadi.simulation.buffered_function import Array, BufferedFunction
from mbcasadi.simulation.events import Event, EventRecord, Switch
from mbcasadi.simulation.functions import energy_fun
from mbcasadi.simulation.manifold import Manifold
from mbcasadi.system import evaluate
from mbcasadi.system.sizes import residual_sizes

CLOSING_GAP = 1e-6
"""Residual, over its size, at which a row may close; Newton's steps remove the remainder."""


class TopologyChange:
    """Applies events and switches on a manifold."""

    def __init__(self, manifold: Manifold) -> None:
        self._system, self._manifold = manifold.system, manifold
        self._energies = BufferedFunction(energy_fun(manifold.system))

    def apply(
        self, event: Event | Switch, t: float, q: Array, v: Array
    ) -> tuple[Array, Array, EventRecord]:
        """Return the state after the event, and the record of it.

        Args:
            event: the event or switch.
            t: s, its time.
            q, v: (nq,), (nv,) state before it.

        Raises:
            SimulationError: a row would close that is open, and the event does not hold it.
        """
        mask = self._mask_after(event)
        closing = (mask > 0) & (self._manifold.mask == 0)
        gap, impulse = 0.0, np.zeros_like(v)
        q_next, v_next = q, v
        if not np.array_equal(mask, self._manifold.mask):
            gap = self._set_rows(event, mask, closing, t, q)
            if np.any(closing):
                q_next = self._manifold.pose(q, t)
                v_next, impulse = self._manifold.jump(q_next, v, t)
            self._manifold.probe_usual_rank(q_next, v_next, t)
        before, after = self._energies(q, v)[0], self._energies(q_next, v_next)[0]
        record = EventRecord(
            name=event.name,
            time=t,
            mask=mask,
            v_before=v,
            v_after=v_next,
            impulse=impulse,
            gap=gap,
            energy_before=float(before.sum()),
            energy_after=float(after.sum()),
            energy_loss=float(before[0] - after[0]),
        )
        return q_next, v_next, record

    def _set_rows(
        self, event: Event | Switch, mask: Array, closing: Array, t: float, q: Array
    ) -> float:
        """Set the new rows on the manifold; return the gap of those that close."""
        phi = evaluate(self._system.constraint, {"q": q, "t": t}).full().ravel()
        gap = float(np.abs(phi[closing]).max(initial=0.0))
        sized = np.abs(phi) * closing / residual_sizes(self._system)
        if sized.max(initial=0.0) > CLOSING_GAP and not event.hold:
            names = self._system.constraint_names
            worst = int(np.argmax(sized))
            raise SimulationError(
                f"'{event.name}' at t = {t:.9g} s would close row {worst} ({names[worst]}), which "
                f"is open by {phi[worst]:.3g}; give hold=True to hold the rows as they are, or "
                "switch where they are closed"
            )
        offset = self._manifold.offset * mask
        if event.hold:
            offset = np.where(closing, phi, offset)
        self._manifold.set_active_rows(mask, offset)
        return gap

    def _mask_after(self, event: Event | Switch) -> Array:
        if event.mask is None:
            return self._manifold.mask
        return column(f"mask of '{event.name}'", event.mask, self._system.nc)
