"""Valid calls of estimators, observers and contact detection."""

import casadi as ca
import numpy as np

from fuzz import examples as ex
from mbcasadi import estimation
from mbcasadi.control import regulators


def calls_of_estimation():
    filters = calls_of_filters() | calls_of_linear_filters()
    return calls_of_observers() | filters | calls_of_logs()


def calls_of_logs():
    sensors = [estimation.Measured("crank", 1e-3, kind="position")]
    noise = {"force_noise": 0.1, "likelihood": True}
    estimator = estimation.manifold_filter(ex.four_bar(), sensors, **noise)
    t = np.linspace(0.0, 0.1, 5)
    log = estimation.SensorLog({"y.crank": (t, t), "u.crank": (t, t)})
    logged = estimation.logged_inputs(estimator, log)
    said = estimation.estimate_log(estimator, logged)

    def make(force):
        assert force > 0
        return estimator

    still = np.random.default_rng(0).standard_normal(40)
    return {
        "estimation.Channel": {"name": "crank"},
        "estimation.SensorLog": {"channels": {"crank": (t, t)}},
        "estimation.SensorLog.samples": {"self": log, "name": "y.crank"},
        "estimation.read_log": {"path": ex.log_file()},
        "estimation.logged_inputs": {"estimator": estimator, "log": log},
        "estimation.estimate_log": {"estimator": estimator, "logged": logged},
        "estimation.Estimates.errors": {
            "self": said,
            "system": ex.four_bar(),
            "q": said.q,
            "v": said.v,
        },
        "estimation.fit_noise": {
            "make": make,
            "logged": logged,
            "start": {"force": 1.0},
        },
        "estimation.allan_deviation": {"samples": still, "period": 1e-2},
        "estimation.inertial_noise": {"samples": still, "period": 1e-2},
    }


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
        "estimation.PassiveJoint": {"joint": "left-shin"},
        "estimation.Fix": {"kind": "yaw", "frame": "trunk", "noise": 0.02},
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


def calls_of_linear_filters():
    linear, kalman = ex.linear(), ex.estimator()
    calls = {
        "kalman": {
            "linear": linear,
            "output": ex.encoder(),
            "W": np.repeat([0, 1.0], 3),
            "V": 1e-6,
        },
        "lqg": {
            "estimator": kalman,
            "K": regulators.lqr_gain(linear, np.ones(6), 1.0, period=1e-3).K,
        },
        "KalmanFilter.correct": {
            "self": kalman,
            "x": ca.SX.sym("x", 2),
            "y": ca.SX.sym("y"),
            "memory": ca.SX.sym("m", 3),
        },
        "KalmanFilter.deviation": {
            "self": kalman,
            "x": ca.SX.sym("x", 2),
            "y": ca.SX.sym("y"),
            "used": ca.SX.sym("used"),
        },
        "KalmanFilter.predict": {
            "self": kalman,
            "x": ca.SX.sym("x", 2),
            "u": ca.SX.sym("u"),
        },
    }
    return {"estimation." + name: arguments for name, arguments in calls.items()}
