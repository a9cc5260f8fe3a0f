"""The law that follows plans unless it is given: its posture is that of joints with actuators."""

import casadi as ca
import numpy as np
from support.two_feet import LEGS, MODEL

import mbcasadi as mb
from mbcasadi.mpc.whole_body.defaults import default_law

FINGER = """<body name="finger" pos="0 0 .1"><joint name="finger" axis="0 1 0" frictionloss=".01"/>
  <geom type="sphere" size=".004" pos=".01 0 0" mass=".002"/></body>"""
WITH_FINGER = MODEL.replace("\n</body></worldbody>", f"{FINGER}</body></worldbody>")
ENDS = {"heel": -0.05, "toe": 0.1}  # m
KEPT = 0.02  # m/s² and rad/s², that the weight of the finger leaves


def test_a_finger_that_no_actuator_moves_takes_the_base_nowhere():
    """A law that keeps the finger from falling takes the base along with it, by g."""
    system = mb.read_mjcf(WITH_FINGER)
    q0, still = np.array(system.tree.q0), np.zeros(system.nv)
    feet = [mb.Contact(f"foot_{name}", friction=0.6) for name in LEGS]
    law = default_law(system, feet, 0.002, 0.2, None, ())
    assert "finger" not in law.tasks[0].components(system)
    ref, weight = law.reference_at(q0), 9.81 * sum(body.mass for body in system.tree.bodies)
    ref[law.reference_slices["force"]] = [weight / 2, 0, 0, weight / 2, 0, 0]
    inputs = {"q": q0, "v": still, "ref": ref, "mask": np.ones(2), "z": law.z0}
    function = law.controller.function
    found = function(**{name: inputs[name] for name in function.name_in()})
    assert float(found["status"]) == 0
    touching = mb.with_contacts(system, feet, q0)
    motion = mb.forward_dynamics(touching, derivatives=False)
    f = system.actuation(q0) @ found["u"]
    a = np.array(ca.DM(motion(q=q0, v=still, f=f)["a"])).ravel()
    finger = next(j.dof for j in system.tree.joints if j.name == "finger")
    assert abs(a[finger]) > 100.0
    assert np.abs(np.delete(a, finger)).max() < KEPT


def test_feet_that_stand_on_a_line_come_to_rest_sooner():
    """They turn as they creep, and a plan's forces turn them on; a sole carries a moment."""
    site = '<site name="foot_{0}" pos="0 0 -.3"/>'
    text, damping = MODEL, {}
    for name in LEGS:
        ends = "".join(f'<site name="{end}_{name}" pos="{x} 0 -.3"/>' for end, x in ENDS.items())
        text = text.replace(site.format(name), site.format(name) + ends)
    system = mb.read_mjcf(text)
    for kind in (("foot",), tuple(ENDS)):
        feet = [mb.Contact(f"{end}_{name}", friction=0.6) for name in LEGS for end in kind]
        damping[len(kind)] = default_law(system, feet, 0.002, 0.2, None, ()).contact_damping
    assert damping[2] >= 2 * damping[1]
