"""Directions that are spread evenly over the sphere."""

import numpy as np
from numpy.typing import NDArray


def even_directions(count: int) -> NDArray[np.float64]:
    """Return (count, 3) unit directions, a Fibonacci lattice."""
    k = np.arange(count) + 0.5
    height, turn = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    level = np.sqrt(1 - height**2)
    return np.column_stack([level * np.cos(turn), level * np.sin(turn), height])
