"""What equations of motion add over a step: forces of springs, dampers and servos at its end."""

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class EndOfStep:
    """What the equations of motion add over a step of length h.

    `(M + h D + h² K) a + h = f - h K v + …`: see `model.end_of_step`.

    Attributes:
        slopes: (q, v) → (D, K), (nv, nv); None where forces are those at the start.
        length: h, s; None where it is the input `step` of the dynamics.
    """

    slopes: ca.Function | None
    length: float | None

    def inertia(self, q: ca.SX, v: ca.SX, h: ca.SX | float) -> ca.SX:
        """Return `h D + h² K`."""
        if self.slopes is None:
            return ca.SX(v.numel(), v.numel())
        D, K = self.slopes(q, v)
        return ca.sparsify(h * D + h**2 * K)

    def force(self, q: ca.SX, v: ca.SX, h: ca.SX | float) -> ca.SX:
        """Return `-h K v`."""
        return ca.SX(v.numel(), 1) if self.slopes is None else -h * (self.slopes(q, v)[1] @ v)
