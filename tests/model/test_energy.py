"""Potential energy against MuJoCo's, and as the potential of the passive forces."""

import casadi as ca
import mujoco
import numpy as np
import pytest
from model_mechanisms import MECHANISMS
from support.hard_cases import FLAGS, JOINTS, TENDONS
from support.random_models import random_mjcf

from mbcasadi import mjcf, model

ROUNDING = 1e-12  # relative to the largest part
STATES = 3
MIXED = "gravity compensation"  # one joint takes it as a passive force, the next one not
CASES = {
    **MECHANISMS,
    **JOINTS,
    **TENDONS,
    **FLAGS,
    **{f"random {seed}": random_mjcf(seed) for seed in range(4)},
}


class Energies:
    """V, its rate along v and the power of the forces that it should be the potential of."""

    def __init__(self, source):
        self.data = mjcf.read(source)
        self.compiled, _ = mjcf.load(source)
        self.tree = tree = self.data.tree
        q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
        V = model.potential_energy(tree, q)
        rate = ca.jtimes(V, q, model.velocity_map(tree, q) @ v)
        g = model.gravity_force(tree, q)
        at_rest = model.passive_force(tree, q, ca.SX.zeros(tree.nv), self.data.actuators)
        parts = [V, rate, ca.dot(v, g), ca.dot(v, at_rest)]
        self.f = ca.Function("f", [q, v], [ca.densify(part) for part in parts])

    def states(self):
        rng = np.random.default_rng(21)
        return [model.random_state(self.tree, rng) for _ in range(STATES)]

    def __call__(self, q, v):
        return [float(x) for x in self.f(q, v)]

    def of_mujoco(self, q):
        """Return MuJoCo's energy, and that of the compensation of all bodies that move."""
        self.compiled.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        data = mujoco.MjData(self.compiled)
        data.qpos[:] = q
        mujoco.mj_forward(self.compiled, data)
        lifted = sum(
            body.gravcomp * body.mass * self.tree.gravity @ data.xipos[i]
            for i, body in enumerate(self.tree.bodies)
            if self.compiled.body_weldid[i]
        )
        return data.energy[0], lifted


@pytest.mark.parametrize("name", sorted(CASES))
def test_potential_energy_is_that_of_mujoco_plus_compensation(name):
    energies = Energies(CASES[name])
    for q, v in energies.states():
        found, rate, *powers = energies(q, v)
        expected, lifted = energies.of_mujoco(q)
        if not name.startswith(MIXED):
            size = max(1.0, abs(expected), abs(lifted))
            assert found == pytest.approx(expected + lifted, abs=ROUNDING * size)
            assert rate == pytest.approx(
                powers[0] - powers[1], abs=ROUNDING * max(1.0, *map(abs, powers))
            )


def test_every_kind_of_spring_and_compensation_is_met():
    """The comparisons above are not between zeros."""
    for name in (
        "ball and free springs",
        "polynomial springs and dampers",
        "fixed tendons with spring, dead band, damper and armature",
        "random 0",
    ):
        energies = Energies(CASES[name])
        stored = [abs(energies(q, v)[3]) for q, v in energies.states()]
        assert max(stored) > 0.1, name
    assert any(energies.of_mujoco(q)[1] != 0.0 for q, _ in energies.states())


COMPENSATED = """
<mujoco><worldbody>
  <body gravcomp=".7"><joint axis="0 1 0"{}/><geom size=".1" pos="1 0 0"/>
    <body pos="1 0 0" gravcomp="1.5"><joint axis="0 1 0"{}/><geom size=".1" pos=".5 0 .3"/></body>
  </body></worldbody></mujoco>"""
BY_ACTUATOR = ' actuatorgravcomp="true"'


def test_compensation_counts_where_all_joints_below_take_it_as_a_passive_force():
    passive = Energies(COMPENSATED.format("", ""))
    by_actuator = Energies(COMPENSATED.format(BY_ACTUATOR, BY_ACTUATOR))
    mixed = Energies(COMPENSATED.format("", BY_ACTUATOR))
    for q, v in passive.states():
        expected, lifted = passive.of_mujoco(q)
        assert abs(lifted) > 1e-3
        assert passive(q, v)[0] == pytest.approx(expected + lifted, abs=1e-12)
        assert by_actuator(q, v)[0] == pytest.approx(expected, abs=1e-12)
        _, rate, gravity, force = passive(q, v)
        assert rate == pytest.approx(gravity - force, abs=1e-12)
        # the outer body's compensation has no potential on the inner joint alone
        _, rate, gravity, force = mixed(q, v)
        assert abs(rate - (gravity - force)) > 1e-3


def test_gravity_force_is_the_bias_force_at_rest():
    data = mjcf.read(MECHANISMS["every_joint"])
    q, v = ca.SX.sym("q", data.tree.nq), ca.SX.sym("v", data.tree.nv)
    f = ca.Function(
        "f",
        [q, v],
        [model.gravity_force(data.tree, q), model.bias_force(data.tree, q, v)],
        {"cse": True},
    )
    for seed in range(STATES):
        q0, v0 = model.random_state(data.tree, np.random.default_rng(seed))
        found, expected = f(q0, 0.0 * v0)
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
