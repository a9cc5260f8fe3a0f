"""Unit systems: a number of SI times `length^a mass^b time^c`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Units:
    """How many units of a system one metre, one kilogram and one second are."""

    name: str
    length: float
    mass: float
    time: float

    @property
    def acceleration(self) -> float:
        return self.length / self.time**2

    @property
    def force(self) -> float:
        return self.mass * self.acceleration

    @property
    def torque(self) -> float:
        return self.force * self.length

    @property
    def inertia(self) -> float:
        return self.mass * self.length**2


SI = Units("m-kg-s", 1.0, 1.0, 1.0)
MM_G_S = Units("mm-g-s", 1e3, 1e3, 1.0)
KM_T_MIN = Units("km-t-min", 1e-3, 1e-3, 1.0 / 60.0)
SYSTEMS = (SI, MM_G_S, KM_T_MIN)
