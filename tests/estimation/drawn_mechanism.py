"""Runs of a mechanism under white forces, with noisy readings, as a filter expects them.

A batch goes side by side: arrays (runs, ...). Motion is that of `forward_dynamics` in short steps
of Runge and Kutta, closed to rounding after each; nothing of the filter's step is used.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi.system import evaluate
from mbcasadi.system.closing import close_state

SUBSTEPS = 2


def closed_fun(system):
    """Return (q, v) → (q, v) on the manifold."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    state = close_state(system, q, v, ca.SX.ones(system.nc))
    return ca.Function("closed", [q, v], [state.q, state.v])


def truth_fun(system, dt, substeps=SUBSTEPS):
    """Return (q, v, f) → (q, v) after dt under a constant force beside the passive ones."""
    q, v, f = (ca.MX.sym(k, n) for k, n in (("q", system.nq), ("v", system.nv), ("f", system.nv)))
    motion, h = mb.forward_dynamics(system, derivatives=False), dt / substeps
    closed, N = closed_fun(system), system.velocity_map
    pose, rate = q, v
    for _ in range(substeps):
        k = []
        for part in (0, 0.5, 0.5, 1):
            at = (pose, rate) if not k else (pose + part * h * k[-1][0], rate + part * h * k[-1][1])
            k.append((N(at[0]) @ at[1], motion(*at, f)[0]))
        pose, rate = (
            x + h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i])
            for i, x in enumerate((pose, rate))
        )
        pose, rate = closed(pose, rate)
    return ca.Function("truth", [q, v, f], [pose, rate], ["q", "v", "f"], ["q_next", "v_next"])


@dataclass
class DrawnMechanism:
    """A batch of runs of a system with controls or forces.

    Attributes:
        q, v: (runs, nq), (runs, nv) truth.
    """

    system: mb.System
    dt: float
    force_noise: np.ndarray
    q: np.ndarray
    v: np.ndarray
    rng: np.random.Generator
    substeps: int = SUBSTEPS

    def __post_init__(self):
        self.truth = truth_fun(self.system, self.dt, self.substeps).map(len(self.q))

    def step(self, force):
        """Move by dt under (runs, nv) forces and the noise."""
        white = self.rng.standard_normal(self.v.shape) * self.force_noise / np.sqrt(self.dt)
        q, v = self.truth(self.q.T, self.v.T, (force + white).T)
        self.q, self.v = np.array(q).T, np.array(v).T

    def applied(self, u):
        """Return (runs, nv) forces of actuators at controls (nu,)."""
        force = self.system.actuator_force.map(len(self.q))
        return np.array(force(self.q.T, self.v.T, np.tile(u, (len(self.q), 1)).T)).T


def drawn_start(system, estimator, runs, rng):
    """Return truths (q, v) around the first estimate, drawn from its covariance."""
    n, nv, nq = len(estimator.outputs[0].components), system.nv, system.nq
    assert n == nq
    z = estimator.z0
    size = 2 * nv
    L = z[nq + nv : nq + nv + size**2].reshape(size, size, order="F")
    error = L @ rng.standard_normal((size, runs))
    closed = closed_fun(system)
    states = [
        closed(system.integrate(z[:nq], error[:nv, k]), z[nq : nq + nv] + error[nv:, k])
        for k in range(runs)
    ]
    q, v = (np.array(ca.horzcat(*x)).T for x in zip(*states, strict=True))
    return q, v


def batch_of(estimator, runs):
    """Return the estimator's Function for all runs, on arrays (runs, ...) by name."""
    function = estimator.function.map(runs)

    def call(z, **inputs):
        rows = {key: np.atleast_2d(x) for key, x in inputs.items()}
        full = {k: np.broadcast_to(x, (runs, x.shape[1])).T for k, x in rows.items()}
        out = function(z=np.asarray(z).T, **full)
        return {key: np.array(x).T for key, x in out.items()}

    return call


def nees(system, q, v, q_hat, v_hat, P):
    """Return ξᵀ P⁺ ξ and the rank of P, for one run."""
    error = np.append(np.array(system.difference(q_hat, q)).ravel(), v - v_hat)
    w, U = np.linalg.eigh(P)
    kept = w > 1e-9 * w.max()
    return float(np.sum((U.T @ error)[kept] ** 2 / w[kept])), int(kept.sum())


def readings(system, name, q, v):
    """Return the readings of a model's sensor that depends on the state."""
    sensor = system.sensor(name)
    zeros = {k: ca.DM.zeros(*sensor.size_in(k)) for k in sensor.name_in()}
    return np.array(evaluate(sensor, zeros | {"q": ca.DM(q), "v": ca.DM(v)})).ravel()
