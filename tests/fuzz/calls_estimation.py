"""Valid calls of the observers and of contact detection."""

from fuzz import examples as ex
from mbcasadi import estimation


def calls_of_observers():
    system, load = ex.quadruped(), estimation.FootLoad(35.0, 8.0)
    noise = {"rate_noise": 1e-3, "force_noise": 0.1}
    return {
        "estimation.ContactBelief": {},
        "estimation.FootLoad": {"load": 35.0, "noise": 8.0},
        "estimation.contact_probability": {
            "system": system,
            "contacts": ex.feet(),
            "force": load,
            "residual": load,
        },
        "estimation.momentum_observer": {"system": ex.four_bar(), "gain": 50.0, **noise},
        "estimation.residual_forces": {"system": system, "contacts": ex.feet()},
        "estimation.velocity_observer": {"system": ex.four_bar()},
    }
