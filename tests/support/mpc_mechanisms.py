"""Small mechanisms for tests of real-time iterations."""

import casadi as ca

from mbcasadi.system import from_lagrangian


def cart_pole(*, upright=False, limit=12.0):
    """Return a cart of 1 kg with a pole of 0.3 kg at 0.5 m, hanging, or standing, at q = 0."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    arm = -0.5 if upright else 0.5
    bob = ca.vertcat(v[0] + arm * v[1] * ca.cos(q[1]), arm * v[1] * ca.sin(q[1]))
    return from_lagrangian(
        q,
        v,
        kinetic=v[0] ** 2 / 2 + 0.3 * ca.sumsqr(bob) / 2,
        potential=-0.3 * 9.81 * arm * ca.cos(q[1]),
        B=[[1], [0]],
        ctrl_range=[[-limit, limit]],
        name="cart_pole",
    )


def sliding_mass(mass=2.0, **given):
    """Return a mass on a rail, pushed along it."""
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    return from_lagrangian(q, v, kinetic=mass * v**2 / 2, B=[[1]], name="mass", **given)


def coupled_carts():
    """Return carts of 1 kg and 3 kg whose places a row makes equal while its mask is on."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kinetic = v[0] ** 2 / 2 + 3 * v[1] ** 2 / 2
    carts = from_lagrangian(q, v, kinetic=kinetic, B=[[1], [0]], phi=q[0] - q[1], name="carts")
    return carts.with_mask([0])
