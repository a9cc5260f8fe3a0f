"""One interval of optimal control whose unknowns are those of inverse dynamics is inverse dynamics.

The problem is solved by another method in other unknowns: accelerations, multipliers and forces
stay in it, equations of motion are eliminated by a singular value decomposition, the QP is that of
quadprog. Limits are active at most states.
"""

from functools import cache

import casadi as ca
import mujoco
import numpy as np
import pytest
import quadprog
from support.corpora import robot

import mbcasadi as mb
from mbcasadi import models, mpc
from mbcasadi.control import (
    AngularMomentumLimit,
    DistanceLimits,
    FrameTask,
    FrictionLoss,
    HalfSpace,
    InverseDynamicsQP,
    JointLimits,
    PostureTask,
    RigidSprings,
    SoftLimit,
)
from mbcasadi.system.closing import close_state

STATES, FEWER = 250, 60  # of each mechanism, with `--all` and without
SAME = 1e-8  # of the forces, over the largest one
DEPENDENT = 1e-9  # singular values of the equations below, over the largest
LEGS = ("FL", "FR", "RL", "RR")
BETWEEN_POSTS = """
<mujoco>
  <option gravity="0 0 0"/>
  <default><motor ctrllimited="true" ctrlrange="-40 40"/><joint axis="0 0 1"/></default>
  <worldbody>
    <geom name="post" type="box" pos=".55 .02 0" size=".05 .06 .2"/>
    <geom name="drum" type="cylinder" pos="-.3 .4 0" size=".1 .2"/>
    <geom name="rod" type="capsule" pos="0 .6 0" size=".05 .2"/>
    <body><joint name="shoulder"/>
      <geom type="cylinder" fromto=".06 0 0 .34 0 0" size=".03" mass="2"/>
      <body pos=".4 0 0"><joint name="elbow"/>
        <geom type="box" pos=".15 0 0" size=".1 .02 .03"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator>
</mujoco>
"""


def quadruped():
    system = mb.read_mjcf(models.path("quadruped"))
    return InverseDynamicsQP(
        system,
        [FrameTask("trunk", kind="body", kp=100.0, weight=100.0), PostureTask(kp=50.0)],
        [mb.Contact(leg, friction=0.6, sides=4, max_force=120.0) for leg in LEGS],
        joint_limits=JointLimits(velocity=15.0, braking=200.0),
        bound_errors=False,
        torque_weight=1e-2,
        parts=[HalfSpace("FL", -0.19, 50.0), AngularMomentumLimit(3.0)],
        period=0.002,
    )


def humanoid():
    """Return a law of a biped on two flat feet, four corners each: internal forces are unknown."""
    system = mb.read_mjcf(models.path("humanoid"))
    corners = [f"{side}_foot_{k}" for side in ("left", "right") for k in range(1, 5)]
    tasks = [FrameTask("pelvis", kp=100.0, weight=10.0), PostureTask(kp=50.0)]
    contacts = [mb.Contact(name, friction=0.7, sides=4) for name in corners]
    return InverseDynamicsQP(system, tasks, contacts, torque_weight=1e-4, period=0.002)


def four_bar():
    system = mb.read_mjcf(models.path("four_bar"))
    limits = [[-0.15, 0.15]] * system.nu
    return InverseDynamicsQP(system, [PostureTask(("crank",))], force_limits=limits, period=0.002)


def cassie():
    """Return a law of Cassie on two points of each foot, with its springs held."""
    model = mujoco.MjSpec.from_file(str(robot("men__agility_cassie__cassie")))
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    model.worldbody.add_geom(name="floor", type=plane, size=[0, 0, 1], condim=3, conaffinity=15)
    system = mb.read_mjcf(model)
    feet = mb.contacts_of(system, bodies=("left-foot", "right-foot"), ground="floor")
    sides = ("left", "right")
    springs = RigidSprings([f"{s}-{name}" for s in sides for name in ("shin", "heel-spring")])
    return InverseDynamicsQP(
        system,
        [FrameTask("cassie-pelvis", kind="body", kp=100.0, weight=100.0), PostureTask(kp=50.0)],
        [contact.as_contact(sides=4) for contact in feet],
        rigid_springs=springs,
        joint_limits=JointLimits(tuple(system.actuator_names)),
        bound_errors=False,
        torque_weight=1e-4,
        period=0.002,
    )


LAWS = {"quadruped": quadruped, "humanoid": humanoid, "four-bar": four_bar, "cassie": cassie}


def priced():
    """Return a law with soft limits, weights of forces, dry friction, and a foot that slides."""
    system = mb.read_mjcf(models.path("quadruped"))
    slides = mb.Contact("FL", friction=0.2, slides=True)
    return InverseDynamicsQP(
        system, [FrameTask("trunk", kind="body", kp=100.0, weight=100.0), PostureTask(kp=50.0)],
        [slides, *(mb.Contact(leg, friction=0.6, sides=4) for leg in LEGS[1:])],
        joint_limits=JointLimits(velocity=15.0, braking=200.0), bound_errors=False,
        soft=[SoftLimit("joints", linear=1.0), SoftLimit("normal forces")], force_weight=1e-3,
        friction_loss=FrictionLoss({"FR_hip": 0.5, "RL_calf": 0.3}, speed=0.1),
        torque_weight=1e-2, period=0.002,
    )  # fmt: skip


def massless():
    """Return a law of two slides on one row, the driven one without mass: M is singular."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    phi, kinetic = q[0] - 2 * q[1], 3 * v[0] ** 2 / 2
    limits = {"ctrl_range": [[-0.5, 0.5]], "name": "massless"}
    system = mb.from_lagrangian(q, v, kinetic=kinetic, B=[[0], [1]], phi=phi, **limits)
    return InverseDynamicsQP(system, [PostureTask()], period=0.002)


def cart_pole(size):
    """Return a law of a cart-pole of this size, m, which weighs as much as water would."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    kg, g = 1e3 * size**3, 9.81
    bob = ca.vertcat(v[0] + size * v[1] * ca.cos(q[1]), size * v[1] * ca.sin(q[1]))
    kinetic = kg * v[0] ** 2 / 2 + 0.3 * kg * ca.sumsqr(bob) / 2
    potential, most = -0.3 * kg * g * size * ca.cos(q[1]), 0.2 * kg * g
    limits = {"ctrl_range": [[-most, most]], "name": "cart_pole"}
    system = mb.from_lagrangian(q, v, kinetic=kinetic, potential=potential, B=[[1], [0]], **limits)
    return InverseDynamicsQP(system, [PostureTask(kp=g / size)], period=0.002)


def kept_apart():
    """Return a law of an arm between posts, of whose many pairs two have rows in a tick."""
    system = mb.read_mjcf(BETWEEN_POSTS)
    limits = DistanceLimits(braking=6.0, margin=0.02, nearest=2)
    return InverseDynamicsQP(system, [PostureTask()], distance_limits=limits, period=0.002)


FEW = {
    "soft, weighed, sliding": priced,
    "singular M": massless,
    "millimetre": lambda: cart_pole(1e-3),
    "kilometre": lambda: cart_pole(1e3),
    "nearest distances": kept_apart,
}


@cache
def closing_of(system):
    """Return (q, v) → the state on the manifold."""
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    closed = close_state(system, q, v, ca.SX.ones(system.nc))
    outputs = [closed.q, closed.v, closed.closed]
    return ca.Function("closed", [q, v], outputs)


def states(law, count):
    """Yield q, v, a reference of another pose, and a mask with some contacts off."""
    system, rng = law.system, np.random.default_rng(0)
    tree = system.tree
    poses = [q for q, _ in system.scales.states]
    poses += [] if tree is None else list(tree.keyframes.values())
    for _ in range(count):
        q = system.integrate(poses[rng.integers(len(poses))], 0.05 * rng.standard_normal(system.nv))
        state = q, 0.3 * rng.standard_normal(system.nv), 0
        for _ in range(4):  # to rounding
            state = closing_of(system)(*state[:2])
        if not state[2]:
            continue
        goal = system.integrate(q, 0.1 * rng.standard_normal(system.nv))
        mask = np.ones(len(law.mask_names))
        mask[: len(law.contacts)] = rng.random(len(law.contacts)) > 0.2
        yield *(x.full().ravel() for x in state[:2]), law.reference_at(goal.full().ravel()), mask


def units_of(R, E):
    """Return units of the unknowns (n,) in which no column of cost and equations is small."""
    unit = np.ones(R.shape[1])
    for _ in range(20):  # each round halves the orders of magnitude
        rows = np.abs(E * unit).max(axis=1, keepdims=True, initial=0.0)
        parts = [E * unit / np.where(rows > 0, rows, 1.0), R * unit / np.abs(R * unit).max()]
        columns = np.abs(np.vstack(parts)).max(axis=0)
        unit /= np.sqrt(np.where(columns > 0, columns, 1.0))
    return unit


class Interval:
    """The problem of one interval as numbers: residual and rows are affine in the unknowns."""

    def __init__(self, ocp):
        self.ocp = ocp
        x, u, p = (ca.SX.sym(n, ocp.dynamics.size1_in(n)) for n in ("x", "u", "p"))
        r, g = ocp.residual(x, u, p), ocp.path(x, u, p)
        at = ca.SX.zeros(u.numel())
        outputs = [r, ca.jacobian(r, u), g, ca.jacobian(g, u)]
        outputs = [ca.densify(ca.substitute([y], [u], [at])[0]) for y in outputs]
        self.values = ca.Function("values", [x, p], outputs)

    def solve(self, x, p):
        """Return u (nu,), or None where the rows exclude each other, and whether one is active."""
        r, R, g, G = (np.array(y) for y in self.values(x, p))
        low, high = self.ocp.path_bounds.T
        fixed = low == high
        unit = units_of(R, G[fixed])
        R, G = R * unit, G * unit
        E, e = G[fixed], low[fixed] - g[fixed].ravel()
        size = np.linalg.norm(E, axis=1)
        size[size == 0] = 1.0  # rows that are off
        U, s, Vt = np.linalg.svd(E / size[:, None])
        rank = int(np.sum(s > DEPENDENT * s[0]))
        start = Vt[:rank].T @ ((U[:, :rank].T @ (e / size)) / s[:rank])
        Z = Vt[rank:].T
        # directions that neither cost nor move anything: forces of redundant rows
        felt = [
            part @ Z / max(np.abs(part @ Z).max(initial=0.0), 1e-300) for part in (R, G[~fixed])
        ]
        _, s, Vt = np.linalg.svd(np.vstack(felt), full_matrices=False)
        Z = Z @ Vt[: int(np.sum(s > DEPENDENT * s[0]))].T
        rows, ends = G[~fixed], low[~fixed] - g[~fixed].ravel()
        Q, T = np.linalg.qr(R @ Z)  # y = T⁻¹ (x - Qᵀ r): the cost is ½ |x|²
        offset = Q.T @ (r.ravel() + R @ start)
        to_u = Z @ np.linalg.inv(T)
        start = start - to_u @ offset
        C, b = rows @ to_u, ends - rows @ start
        lengths = np.maximum(np.linalg.norm(C, axis=1), 1e-12)
        try:
            rows = (C / lengths[:, None]).T, b / lengths
            y, *_, active = quadprog.solve_qp(np.eye(len(T)), np.zeros(len(T)), *rows)
        except ValueError:
            return None, False
        return unit * (start + to_u @ y), active.any()


@pytest.mark.parametrize("kind", [*LAWS, *FEW])
@pytest.mark.every(3)
def test_its_control_is_that_of_the_law(kind, is_thorough):
    states_of_laws = STATES if is_thorough else FEWER
    law, count = (LAWS | FEW)[kind](), states_of_laws if kind in LAWS else STATES // 10
    stage = mpc.StageForces(law, position_limits="braking")
    problem = Interval(mpc.optimal_control_problem(law.system, 1, law.period, [stage]))
    worst = solved = limited = 0
    for q, v, ref, mask in states(law, 3 * count):
        mine = law.solve(q, v, ref, mask=mask)
        p = np.concatenate([ref, mask])
        u, is_limited = problem.solve(np.concatenate([q, v]), p)
        assert (u is None) == (mine.status == 2), mine.status
        if mine.status:
            continue
        solved, limited = solved + 1, limited + is_limited
        off = np.abs(u[: law.system.nu] - mine.p).max() / np.abs(mine.p).max()
        worst = max(worst, off)
        if solved == count:
            break
    assert worst < SAME
    assert solved == count
    assert limited > 0.2 * count
