"""Random states on the manifold of the rows that are on, a column for each."""

import numpy as np
from support.admissible_states import call, column, pinv, times

CLOSED = 1e-11  # m, rad
NEWTON_STEPS = 30
SPREAD = 0.2  # rad, m


def manifold_states(system, count, seed, *, rows=None, centre=None, spread=SPREAD):
    """Return q (nq, count), v (nv, count) with `phi = 0`, `A v = 0` of the rows that are on."""
    rng = np.random.default_rng(seed)
    on = np.ones(system.nc) if rows is None else np.asarray(rows, dtype=float)
    start = system.tree.q0 if centre is None else centre
    q = np.tile(np.reshape(start, (-1, 1)), 2 * count)
    dv = spread * rng.standard_normal((system.nv, 2 * count))
    v = rng.standard_normal(dv.shape)
    if system.nc == 0:
        return (q + dv)[:, :count], v[:, :count]
    for _ in range(NEWTON_STEPS):
        q = column(call(system.integrate, {"q": q, "dv": dv}), "q_next").T
        phi = on * column(call(system.constraint, {"q": q}), "phi")
        A = on[:, None] * call(system.constraint_jacobian, {"q": q})["A"]
        dv = -times(pinv(A), phi).T
    is_closed = np.abs(phi).max(axis=1) < CLOSED
    assert is_closed.sum() >= count
    v = v - times(pinv(A), times(A, v.T)).T
    return q[:, is_closed][:, :count], v[:, is_closed][:, :count]


def outputs_of(function, inputs):
    """Return the outputs of a Function for columns of inputs, each (rows, count)."""
    count = next(iter(inputs.values())).shape[1]
    out = function.map(count)(**inputs)
    return {name: out[name].full() for name in function.name_out()}
