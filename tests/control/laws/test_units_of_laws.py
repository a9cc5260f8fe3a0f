"""Every law on one linkage in several systems of units: control, status and verdicts agree."""

from functools import cache, partial

import casadi as ca
import numpy as np
import pytest
from support.unit_systems import (
    KINDS,
    OTHERS,
    SI,
    Units,
    assert_same,
    controls_of,
    forces_of,
    linkage,
    rates_of,
    state_in,
)

import mbcasadi as mb
from mbcasadi.control import PostureTask, laws
from mbcasadi.control.laws import DryFriction, LawOptions

AGREE = 1e-8  # relative; factorisations of a condition up to 1e6 in other roundings
FORCE = laws.ForceGains(0.5, 0.0)
THETA = ("cart", "crank")


class Timed:
    """The laws with their period in the units of time."""

    def __init__(self, u):
        self.period = 1e-3 * u.s

    def __getattr__(self, name):
        return partial(getattr(laws, name), options=LawOptions(period=self.period))


def posture(u):
    return PostureTask(kp=100.0 / u.s**2, weight=1.0 / rates_of(u) ** 2)


def spring(u):
    """Stiffness and damping of each coordinate."""
    per_force = forces_of(u) / u.of(KINDS)
    return {"stiffness": 30.0 * per_force, "damping": 3.0 * per_force * u.s}


def gains(u):
    """Gains of the regulators of dependent coordinates."""
    per_force = forces_of(u) / u.of(KINDS)
    return {"kp": 30.0 * per_force, "kd": 3.0 * per_force * u.s}


def motion(u):
    """Gains of θ."""
    return {"kp": 100.0 / u.s**2, "kd": 20.0 / u.s}


def rates(u):
    """Gains in quasi-velocities."""
    return {"kp": 10.0 / u.s, "kd": 20.0 / u.s}


def theta(system):
    return laws.joint_coordinates(system, THETA)


def servo(system, u):
    """Rows of cart and crank, in their own units."""
    q, v, y = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("y", 2)
    return laws.servo_rows(system, q, v, phi=q[:2] - y, y=y)


def baumgarte(u):
    return mb.Baumgarte(10.0 / u.s, 10.0 / u.s)


def loop(u, rows=None):
    return laws.ForceGains(0.5, 40.0 / u.s, rows=rows)


LAWS = {
    "computed_torque": lambda s, u: Timed(u).computed_torque(s, posture(u), damping=2.0 / u.s),
    "qr_inverse_dynamics": lambda s, u: Timed(u).qr_inverse_dynamics(s, posture(u)),
    "gravity_compensated_pd": lambda s, u: Timed(u).gravity_compensated_pd(
        s, posture(u), **spring(u)
    ),
    "impedance_control": lambda s, u: Timed(u).impedance_control(s, posture(u), **spring(u)),
    "impedance with inertia": lambda s, u: Timed(u).impedance_control(
        s, posture(u), inertia=0.4 * u.kg * (u.m / u.of(KINDS)) ** 2, **spring(u)
    ),
    "projected_inverse_dynamics": lambda s, u: Timed(u).projected_inverse_dynamics(
        s, theta(s), **motion(u)
    ),
    "passive_joint_control": lambda s, u: Timed(u).passive_joint_control(s, theta(s), **motion(u)),
    "chosen coordinates": lambda s, u: Timed(u).passive_joint_control(s, **motion(u)),
    "constraint_force_control": lambda s, u: Timed(u).constraint_force_control(s, loop(u)),
    "constraint force of rows": lambda s, u: Timed(u).constraint_force_control(
        s, loop(u, ("pin.0", "pin.2"))
    ),
    "hybrid_motion_force_control": lambda s, u: Timed(u).hybrid_motion_force_control(
        s, theta(s), loop(u), **motion(u)
    ),
    "dependent_regulation": lambda s, u: Timed(u).dependent_regulation(
        s, friction=DryFriction(rest_speed=0.01 / u.s), **gains(u)
    ),
    "dependent_tracking": lambda s, u: Timed(u).dependent_tracking(
        s, kp=10.0 / u.s, kd=np.diag(gains(u)["kd"])
    ),
    "servo_control": lambda s, u: Timed(u).servo_control(s, servo(s, u), baumgarte=baumgarte(u)),
    "servo_control, figures": lambda s, u: Timed(u).servo_control(
        s, servo(s, u), baumgarte=baumgarte(u), form="figures"
    ),
    "quasi_velocity_tracking": lambda s, u: Timed(u).quasi_velocity_tracking(
        s, theta(s), **rates(u)
    ),
    "quasi_velocity_tracking, force": lambda s, u: Timed(u).quasi_velocity_tracking(
        s, theta(s), least="force", **rates(u)
    ),
    "quasi_velocity_force": lambda s, u: Timed(u).quasi_velocity_force(
        s, theta(s), gains=loop(u), **rates(u)
    ),
    "quasi_velocity_force, rows": lambda s, u: Timed(u).quasi_velocity_force(
        s, theta(s), gains=loop(u, ("pin.0", "pin.2")), least="force", **rates(u)
    ),
    "within_limits": lambda s, u: laws.within_limits(
        Timed(u).computed_torque(
            s,
            posture(u),
            options=LawOptions(1e-3 * u.s, np.outer(controls_of(u, s.nu == 5), [-2.0, 2.0])),
        )
    ),
}
DRIVEN = ("projected_inverse_dynamics", "constraint_force_control", "hybrid_motion_force_control")


def reference(law, u, chosen=THETA):
    """Return random references in units u, each slice by its name and size; two of θ or of rows."""
    names = ("cart", "crank", "rod", "slider")
    q = state_in(u)[0]
    pose, rate = u.of(KINDS), rates_of(u)
    rng = np.random.default_rng(0)
    values = np.zeros(law.function.numel_in("ref"))
    joints = {4: slice(None), 2: [names.index(n) for n in chosen]}
    for name, place in law.reference_slices.items():
        count = np.arange(values.size)[place].size
        noise = 0.3 * rng.standard_normal(count)
        key = name.split(".")[-1]
        if key in ("q", "y"):
            values[place] = q[joints[count]] + pose[joints[count]] * noise
        elif key in ("v", "ydot"):
            values[place] = rate[joints[count]] * noise
        elif key in ("a", "yddot"):
            values[place] = rate[joints[count]] / u.s * noise
        elif key == "s":
            values[place] = controls_of(u, count == 5) * noise
        elif key == "lam":
            values[place] = 10 * u.force * noise
        elif key in ("f", "measured"):
            values[place] = forces_of(u) * noise
        elif key == "off":
            values[place] = 0.0
        else:
            raise AssertionError(f"{name} has no unit here")
    return values


def outputs(name, u):
    """Return what the law does in these units, in SI."""
    driven = name in DRIVEN
    law = LAWS[name](linkage(u, driven=driven), u)
    q, v = state_in(u)
    chosen = laws.chosen_coordinates(law.system).names if name.startswith("chosen") else THETA
    inputs = {"q": q, "v": v, "ref": reference(law, u, chosen)}
    if "f_c" in law.function.name_in():
        inputs["f_c"] = forces_of(u) * np.array([1.0, -0.4, 0.7, 2.0])
    inputs["z"] = law.controller.z0
    out, desired = law.function(**inputs), law.desired(**inputs)
    return {
        "status": float(out["status"]),
        "flags": float(out["flags"]),
        "u": np.array(out["u"]).ravel() / controls_of(u, driven),
        "a": np.array(desired["a"]).ravel() / rates_of(u) * u.s,
        "f_c": np.array(desired["f_c"]).ravel() / forces_of(u),
    }


@cache
def in_si(name):
    return outputs(name, SI)


@pytest.mark.parametrize("name", LAWS)
def test_the_law_gives_the_same_control_in_all_units(name):
    expected = in_si(name)
    assert np.abs(expected["u"]).max() > 0.1
    for u in OTHERS:
        found = outputs(name, u)
        for key in ("status", "flags"):
            assert found[key] == expected[key], (u, key)
        for key in ("u", "a", "f_c"):
            assert_same(found[key], expected[key], AGREE, f"{key} in {u}")


@pytest.mark.parametrize("units", OTHERS, ids=str)
def test_reports_on_a_mechanism_agree_in_all_units(units):
    def found(u):
        system = linkage(u)
        q, v = state_in(u)
        reach = laws.input_reach(system, q)
        poses = laws.sampled_poses(system, 5, q0=q, spread=0.2)
        workspace = laws.workspace_input_reach(system, poses)
        tracking = laws.multiplier_tracking(system, q)
        y, rate = q[:2] + 0.1 * u.of(KINDS)[:2], rates_of(u)[:2]
        report = laws.servo_report(
            system, servo(system, u), q, v,
            signals={"y": y, "ydot": 0 * rate, "yddot": rate / u.s},
            baumgarte=baumgarte(u),
        )  # fmt: skip
        condition = laws.gain_condition(system, theta(system), poses, np.tile(v, (len(poses), 1)))
        error = laws.composite_error(system, theta(system), kp=10.0 / u.s)
        ref = np.concatenate([y, 0 * rate, 0 * rate])
        return {
            "chosen": laws.chosen_coordinates(system, q).names,
            "motions": reach.motions.shape,
            "undriven": reach.undriven.shape,
            "margin": reach.margin,
            "poses": poses / u.of(KINDS),
            "workspace": workspace.margins,
            "independent": (tracking.rank, tracking.rows),
            "ranks": (report.rank_rows, report.rank_motion, report.rank_control),
            "verdicts": (report.consistent, report.controllable, report.attainable),
            "required gain": condition.required,
            "composite error": np.linalg.norm(np.array(error(q, v, ref)))
            / np.sqrt(u.kg)
            / u.m
            * u.s,
        }

    expected, other = found(SI), found(units)
    for key, value in expected.items():
        if isinstance(value, tuple):
            assert other[key] == value, key
        elif key != "required gain":
            assert_same(other[key], value, AGREE, key)


def test_a_metric_of_ones_is_the_euclidean_one_and_depends_on_units():
    """The reason for the default: the same law, least in the Euclidean norm, in millimetres."""

    def control(u, **metric):
        system = linkage(u)
        law = laws.computed_torque(system, posture(u), **metric)
        q, v = state_in(u)
        out = law.function(q=q, v=v, ref=reference(law, u), z=law.controller.z0)
        return np.array(out["u"]).ravel() / controls_of(u)

    plain = {"control_metric": np.ones(4)}
    assert np.abs(control(SI, **plain) - control(Units(m=1e3), **plain)).max() > 0.1
