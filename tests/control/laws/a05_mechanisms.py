"""Mechanisms and states for the tests of A05's control laws."""

import functools

import casadi as ca
import numpy as np

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.control.laws import sampled_poses

CRANK_MOTOR = '<motor name="crank" joint="crank" ctrlrange="-60 60"/>'
THREE_MOTORS = "".join(
    f'<motor name="{joint}" joint="{joint}" ctrlrange="-200 200"/>'
    for joint in ("crank", "slider", "rod")
)
LAST_MOTOR = '<motor name="f3" joint="q3"/>'


@functools.cache
def model_text(name: str) -> str:
    """Return the MJCF; "slider_crank_driven" and "prr_arm_driven" have a motor at every joint."""
    text = models.path(name.removesuffix("_driven")).read_text()
    if name == "slider_crank_driven":
        assert CRANK_MOTOR in text
        return text.replace(CRANK_MOTOR, THREE_MOTORS)
    if name == "prr_arm_driven":
        assert LAST_MOTOR in text
        return text.replace(LAST_MOTOR, LAST_MOTOR + '<motor name="f4" joint="tip"/>')
    return text


@functools.cache
def system_of(name: str) -> mb.System:
    return mb.read_mjcf(model_text(name))


def closed_states(
    system: mb.System, count: int, seed: int = 0, spread: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Return q (nq, n) and v (nv, n), closed and admissible."""
    q = sampled_poses(system, count, spread=spread, seed=seed).T
    rng = np.random.default_rng(seed + 1)
    v = rng.standard_normal((system.nv, q.shape[1]))
    for i in range(q.shape[1]):
        v[:, i] = projector(system, q[:, i]) @ v[:, i]
    return q, v


def projector(system: mb.System, q: np.ndarray) -> np.ndarray:
    A = system.constraint_jacobian(q).full()
    return np.eye(system.nv) - np.linalg.pinv(A, 1e-9) @ A


def motion_under(
    system: mb.System, q: np.ndarray, v: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a and f_c (nv, n) of the reference formulation under the controls u (nu, n)."""
    n = q.shape[1]
    B, f_0 = system.actuation(q[:, 0]).full(), system.actuator_bias.map(n)(q, v).full()
    f = B @ u + f_0
    a, f_c, _ = mb.forward_dynamics(system, "lagrange", derivatives=False).map(n)(q, v, f)
    return a.full(), f_c.full()


def with_memory(law, z: np.ndarray) -> np.ndarray:
    """Return a law's own states (nz,) or (nz, n), with the first memory of its safe output."""
    first = law.controller.z0
    own = z.reshape(first.size - law.core.safe.size if z.size != first.size else first.size, -1)
    memory = np.repeat(first[len(own) :, None], own.shape[1], axis=1)
    return np.vstack([own, memory])


def outputs_of(law, q, v, ref, z=None, f_c=None, mask=None) -> dict[str, np.ndarray]:
    """Return all outputs (k, n) of a law at many states; ref and z may be one column."""
    n = q.shape[1]
    inputs = {"q": q, "v": v, "ref": ref, "f_c": f_c, "mask": mask}
    inputs["z"] = law.controller.z0 if z is None else z
    values = {}
    for name in law.function.name_in():
        rows = law.function.size1_in(name)
        value = np.asarray(inputs[name], dtype=float)
        if name == "z":
            value = with_memory(law, value)
        values[name] = np.broadcast_to(value.reshape(rows, -1 if rows else 1), (rows, n))
    out = law.function.map(n)(**values)
    outputs = {name: np.asarray(out[name].full()) for name in law.function.name_out()}
    outputs["z_next"] = outputs["z_next"][: law.core.nz]
    return outputs


def in_units(system: mb.System, scale: np.ndarray) -> tuple[mb.System, ca.Function]:
    """Return the mechanism in coordinates `scale * q`, energies in J, and (q') → (q)."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    S = ca.DM(1 / np.asarray(scale))
    back = ca.Function("back", [q], [S * q], ["q"], ["q_si"])
    D = ca.diag(S)
    other = mb.from_equations(
        q,
        v,
        M=D @ system.mass_matrix(S * q) @ D,
        h=D @ system.bias_force(S * q, S * v),
        B=D @ system.actuation(S * q),
        phi=system.constraint(S * q),
    )
    return other, back
