"""One linkage in several systems of units: all is converted, and what has a meaning agrees."""

from dataclasses import dataclass

import casadi as ca
import numpy as np

import mbcasadi as mb


@dataclass(frozen=True)
class Units:
    """How many new units a metre, a kilogram and a second have."""

    m: float = 1.0
    kg: float = 1.0
    s: float = 1.0

    @property
    def torque(self):
        return self.kg * self.m**2 / self.s**2

    @property
    def force(self):
        return self.kg * self.m / self.s**2

    def of(self, kinds):
        """Return the size of coordinates, "m" or "rad" each."""
        return np.array([self.m if kind == "m" else 1.0 for kind in kinds])


SI = Units()
OTHERS = (Units(m=1e-3), Units(m=1e3, kg=1e3, s=10.0))  # km; mm, g and 0.1 s

KINDS = ("m", "rad", "rad", "m")  # cart, crank, rod, slider
CONTROLS = ("force", "torque", "torque", "force")  # cart, crank, crank by a gear, slider
PASSIVE = ("torque",)  # rod, where every joint has a motor
POSE = np.array([0.05, 0.8, -1.5, 0.0])  # nearly closed, in SI
CRANK, ROD = 0.3, 0.4  # m

LINKAGE = """
<mujoco model="linkage">
  <compiler angle="radian" autolimits="true"/>
  <option gravity="0 0 {g}"/>
  <worldbody>
    <body name="cart">
      <joint name="cart" type="slide" axis="1 0 0" damping="{d}" stiffness="{k}"/>
      <inertial pos="0 0 0" mass="{m2}" diaginertia="{I2} {I2} {I2}"/>
      <body name="crank">
        <joint name="crank" axis="0 -1 0" damping="{D}"/>
        <inertial pos="{half_a} 0 0" mass="{m1}" diaginertia="{I1} {I1} {I1}"/>
        <body name="rod" pos="{a} 0 0">
          <joint name="rod" axis="0 -1 0" stiffness="{K}" armature="{I1}"/>
          <inertial pos="{half_b} 0 0" mass="{m1}" diaginertia="{I1} {I1} {I1}"/>
          <site name="tip" pos="{b} 0 0"/>
        </body>
      </body>
    </body>
    <body name="slider">
      <joint name="slider" type="slide" axis="1 0 0" damping="{d}"/>
      <inertial pos="{x0} 0 0" mass="{m2}" diaginertia="{I2} {I2} {I2}"/>
      <site name="pin" pos="{x0} 0 0"/>
    </body>
  </worldbody>
  <equality>
    <connect name="pin" site1="tip" site2="pin"/>
    <connect name="again" site1="tip" site2="pin"/>
    <joint name="copy" joint1="cart" joint2="slider" polycoef="0 1 0 0 0" active="{copy}"/>
  </equality>
  <actuator>
    <motor name="cart" joint="cart" ctrlrange="-{f} {f}"/>
    <motor name="crank" joint="crank" ctrlrange="-{t} {t}"/>
    <motor name="geared" joint="crank" gear="0.5" ctrlrange="-{t} {t}"/>
    <motor name="slider" joint="slider" ctrlrange="-{f} {f}"/>
    {rod}
  </actuator>
</mujoco>
"""


def linkage(u, *, driven=False, limit=1e3, copy=False, switchable=False):
    """Return the System of `linkage_text`, with a mask where it is switchable."""
    text = linkage_text(u, driven=driven, limit=limit, copy=copy)
    return mb.read_mjcf(text, switchable=switchable)


def linkage_text(u, *, driven=False, limit=1e3, copy=False):
    """Return a cart with a crank and a rod to a slider, its pin said twice, in units u.

    Args:
        u: the units.
        driven: a motor at the rod too, so that every joint has one.
        limit: of the controls, N and N m.
        copy: cart and slider also move alike.
    """
    torque, inertia = u.torque, u.kg * u.m**2
    numbers = {
        "g": -9.81 * u.m / u.s**2, "d": 0.7 * u.kg / u.s, "k": 4.0 * u.kg / u.s**2,
        "D": 0.02 * torque * u.s, "K": 0.6 * torque, "m1": 0.3 * u.kg, "m2": 1.1 * u.kg,
        "I1": 0.004 * inertia, "I2": 0.01 * inertia, "a": CRANK * u.m, "b": ROD * u.m,
        "half_a": CRANK / 2 * u.m, "half_b": ROD / 2 * u.m, "x0": 0.45 * u.m,
        "f": limit * u.force, "t": limit * torque,
    }  # fmt: skip
    numbers = {name: f"{value:.17g}" for name, value in numbers.items()}
    rod = f'<motor name="rod" joint="rod" ctrlrange="-{numbers["t"]} {numbers["t"]}"/>'
    return LINKAGE.format(**numbers, rod=rod if driven else "", copy="true" if copy else "false")


def rates_of(u):
    """Return (4,) the units of the linkage's rates."""
    return u.of(KINDS) / u.s


def forces_of(u):
    """Return (4,) the units of forces on the coordinates."""
    return u.torque / u.of(KINDS)


def controls_of(u, driven=False):
    """Return the units of the controls."""
    return np.array([getattr(u, kind) for kind in (*CONTROLS, *(PASSIVE if driven else ()))])


def closed_state(q=POSE):
    """Return a closed pose in SI and an admissible velocity, by NumPy."""
    x, a, _, _ = q
    b = -a - np.arcsin(CRANK / ROD * np.sin(a))  # the pin stays on the axis
    slider = x + CRANK * np.cos(a) + ROD * np.cos(a + b) - 0.45
    v_x, v_a = 0.3, -0.9
    v_b = -v_a - CRANK / ROD * np.cos(a) / np.cos(a + b) * v_a
    v_s = v_x - CRANK * np.sin(a) * v_a - ROD * np.sin(a + b) * (v_a + v_b)
    return np.array([x, a, b, slider]), np.array([v_x, v_a, v_b, v_s])


def state_in(u, q=POSE):
    """Return the state in units u."""
    pose, rate = closed_state(q)
    return u.of(KINDS) * pose, rates_of(u) * rate


def slider_crank(u, limit=np.inf):
    """Return a slider-crank of two angles and a position given by equations, its rows redundant."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    a, b, x = ca.vertsplit(q)
    across = u.m * (0.3 * ca.sin(a) + 0.5 * ca.sin(b))
    phi = ca.vertcat(u.m * (0.3 * ca.cos(a) + 0.5 * ca.cos(b)) - x, across, 2 * across)
    inertia = u.kg * u.m**2
    turning = 0.02 + 0.005 * ca.cos(a - b)
    kinetic = inertia * (turning * v[0] ** 2 + 0.01 * v[1] ** 2) + u.kg * 0.4 * v[2] ** 2
    potential = u.torque * (2.0 * ca.sin(a) + 0.7 * ca.sin(b))
    return mb.from_lagrangian(
        q, v, kinetic=kinetic, potential=potential, phi=phi,
        B=[[1, 0, 0.5], [0, 0, 0], [0, 1, 0]],
        ctrl_range=limit * np.outer([u.torque, u.force, u.torque], [-1, 1]),
    )  # fmt: skip


def assert_same(found, expected, rel, name=""):
    """Assert that two arrays agree, relative to their largest entry."""
    expected, found = np.asarray(expected, dtype=float), np.asarray(found, dtype=float)
    assert np.all(np.isfinite(expected)), name
    atol = rel * np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol, err_msg=name)


def assert_agrees(found, rel, others=OTHERS):
    """Assert that `found(units)`, values in SI by name, is the same in all units; return it in SI.

    Texts, numbers that count, and tuples of them are equal; arrays and floats agree to `rel`.
    """
    expected = found(SI)
    for u in others:
        other = found(u)
        assert other.keys() == expected.keys()
        for key, value in expected.items():
            if isinstance(value, (str, int, tuple)):
                assert other[key] == value, f"{key} in {u}"
            else:
                assert_same(other[key], value, rel, f"{key} in {u}")
    return expected
