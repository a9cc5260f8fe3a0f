"""Valid calls of estimators, observers and contact detection."""

from fuzz import examples as ex
from mbcasadi import estimation


def calls_of_estimation():
    return calls_of_observers() | calls_of_filters()


def calls_of_filters():
    """Estimators, what they expect of sensors, and their data."""
    system = ex.quadruped()
    return {
        "estimation.UnknownForce": {"coordinate": "crank", "walk": 0.1, "deviation": 1.0},
        "estimation.Encoders": {},
        "estimation.FilterOptions": {},
        "estimation.Footing": {},
        "estimation.Imu": {"frame": "trunk"},
        "estimation.Measured": {"name": "crank", "noise": 1e-3, "kind": "position"},
        "estimation.FirstEstimate": {},
        "estimation.UnknownParameter": {"name": "body:payload:mass", "deviation": 1.0},
        "estimation.base_estimator": {
            "system": system,
            "contacts": ex.feet(),
            "imu": estimation.Imu("trunk"),
        },
        "estimation.manifold_filter": {
            "system": ex.four_bar(),
            "sensors": [estimation.Measured("crank", 1e-3, kind="position")],
            "force_noise": 0.1,
        },
        "estimation.encoder_noise": {"bits": 14},
        "estimation.with_estimator": {"law": ex.inverse_dynamics(), "estimator": ex.state_filter()},
    }


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
