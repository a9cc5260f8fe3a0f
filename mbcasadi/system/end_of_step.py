"""What equations of motion add over a step: forces of springs, dampers and servos at its end."""

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class EndOfStep:
    """What the equations of motion add over a step of length h.

    `(M + h D + h² K) a + h = f - h K v + …`: see `model.end_of_step`.

    Attributes:
        slopes: (q, v) → (D, K), (nv, nv).
        length: h, s; None where it is an input, `step`.
    """

    slopes: ca.Function
    length: float | None

    def inertia(self, q: ca.SX, v: ca.SX, step: ca.SX | None = None) -> ca.SX:
        """Return `h D + h² K`; `step` is h where it is an input."""
        h, (D, K) = self._length(step), self.slopes(q, v)
        return ca.sparsify(h * D + h**2 * K)

    def force(self, q: ca.SX, v: ca.SX, step: ca.SX | None = None) -> ca.SX:
        """Return `-h K v`; `step` is h where it is an input."""
        return -self._length(step) * (self.slopes(q, v)[1] @ v)

    def _length(self, step: ca.SX | None) -> ca.SX | float:
        if self.length is not None:
            return self.length
        assert step is not None
        return step
