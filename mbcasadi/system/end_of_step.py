"""What equations of motion add over a step: forces of springs, dampers and servos at its end."""

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class EndOfStep:
    """What the equations of motion add over a step of length h.

    `(M + h D + h² K) a + h = f - h K v + …`: see `model.end_of_step`.

    Attributes:
        slopes: (q, v) → (D, K), (nv, nv).
        length: h, s.
    """

    slopes: ca.Function
    length: float

    def inertia(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Return `h D + h² K`."""
        D, K = self.slopes(q, v)
        return ca.sparsify(self.length * D + self.length**2 * K)

    def force(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Return `-h K v`."""
        return -self.length * (self.slopes(q, v)[1] @ v)
