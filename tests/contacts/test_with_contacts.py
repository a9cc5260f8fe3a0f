"""Contacts as rows of a system: motion and forces as by inverse dynamics, equilibria, masks."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.contacts.constraints import contact_force_fun, with_contacts
from mbcasadi.control import FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.dynamics import Treatment, forward_dynamics_derivatives
from mbcasadi.errors import ProblemError, UnknownNameError

LEGS = [mb.Contact(leg, friction=0.6, sides=4) for leg in ("FL", "FR", "RL", "RR")]
SOLES = [
    mb.Contact(f"{side}_foot_{k}", friction=0.7, sides=4)
    for side in ("left", "right")
    for k in (1, 2, 3, 4)
]
SAME = 1e-7  # of forces and accelerations: two factorisations, cond(G) about 1e4


@cache
def system_of(name):
    """Return a system of the package, which keeps what is built of it."""
    return mb.read_mjcf(models.path(name))


def motion_of(system):
    """Return its forward dynamics, whose derivatives nobody asks for here."""
    return mb.forward_dynamics(system, derivatives=False)


def quadruped():
    system = system_of("quadruped")
    return system, [FrameTask("trunk", kind="body", weight=100.0), PostureTask()], LEGS


def humanoid():
    system = system_of("humanoid")
    return system, [FrameTask("pelvis", weight=100.0), PostureTask()], SOLES


def sloped():
    """Return the quadruped on ground that is tilted about x and y."""
    system, tasks, _ = quadruped()
    normal = (0.2, -0.1, 1.0)
    return system, tasks, [mb.Contact(c.frame, normal=normal, friction=0.6, sides=4) for c in LEGS]


def held_hand():
    """Return the quadruped with a foot on its trunk, which moves: the row is between two bodies."""
    system, tasks, _ = quadruped()
    return system, tasks, [*LEGS[1:], mb.Contact("FL", other="trunk", other_kind="body")]


@pytest.mark.parametrize("case", [quadruped, humanoid, sloped, held_hand])
@pytest.mark.every(4)
def test_motion_and_forces_are_those_of_inverse_dynamics(case):
    """With the actuator forces of a law at random states on the ground; soles share a wrench."""
    system, tasks, contacts = case()
    law = InverseDynamicsQP(system, tasks, contacts, internal_forces="none", rank_tol=1e-8)
    stand, rng = np.array(system.tree.keyframes["stand"]), np.random.default_rng(0)
    touching = with_contacts(system, contacts, stand)
    assert touching.nc == 12
    motion, forces = motion_of(touching), contact_force_fun(touching, contacts)
    for _ in range(10):
        q = system.integrate(stand, 0.05 * rng.standard_normal(system.nv)).full().ravel()
        A = np.array(touching.loop_jacobian(q))
        v = (np.eye(system.nv) - np.linalg.pinv(A) @ A) @ rng.standard_normal(system.nv)
        mine = law.solve(q, v, law.reference_at(stand))
        assert mine.solved
        found = motion(q=q, v=v, f=system.actuator_force(q, v, mine.u))
        scale = max(1.0, np.abs(np.ravel(mine.contact_forces)).max())
        np.testing.assert_allclose(np.array(found["a"]).ravel(), mine.a, atol=SAME * scale)
        f = np.array(forces(q, found["lam"])).ravel()
        np.testing.assert_allclose(f, np.ravel(mine.contact_forces), atol=SAME * scale)


def test_rows_of_a_sole_stay_far_from_depending_on_each_other_as_it_turns():
    """Tangents fixed in the world do not: those of two corners along x leave x and turn alike."""
    system, _, _ = humanoid()
    stand = np.array(system.tree.keyframes["stand"])
    touching = with_contacts(system, SOLES[:4], stand)
    least, turn = [], np.zeros(system.nv)
    for turn[5] in np.linspace(0, 2 * np.pi, 37):
        A = np.array(touching.loop_jacobian(system.integrate(stand, turn)))[:, :6]
        A[:, 3:] /= 0.1  # m, half a sole
        least.append(np.linalg.svd(A, compute_uv=False)[-1])
    assert min(least) == pytest.approx(max(least), rel=1e-6)
    assert min(least) > 0.05


@pytest.mark.long
def test_an_equilibrium_on_rows_is_one_on_contacts():
    system, _, _ = quadruped()
    stand = np.array(system.tree.keyframes["stand"])
    on_rows = mb.equilibrium(with_contacts(system, LEGS, stand), stand)
    on_feet = mb.equilibrium(system, stand, contacts=LEGS)
    assert np.abs(np.array(on_rows.q) - np.array(on_feet.q)).max() < 0.02
    weight = 9.81 * sum(body.mass for body in system.tree.bodies)
    touching = with_contacts(system, LEGS, stand)
    still = np.zeros(touching.nv)
    push = touching.actuator_force(on_rows.q, still, on_rows.u)
    rest = motion_of(touching)(q=on_rows.q, v=still, f=push)
    assert np.abs(np.array(rest["a"])).max() < 1e-6
    f = np.array(contact_force_fun(touching, LEGS)(on_rows.q, rest["lam"])).ravel()
    assert f[::3].sum() == pytest.approx(weight, rel=1e-9)


@pytest.mark.parametrize("case", [quadruped, humanoid, sloped])
@pytest.mark.every(3)
def test_derivatives_of_the_rows_of_points_are_those_of_their_expressions(case):
    """With drift that is taken back, and with a mask; soles have fewer rows than their points."""
    system, _, contacts = case()
    touching = with_contacts(system, contacts).with_mask()
    assert len(touching.point_rows) == touching.nc
    plain = replace(touching, point_rows=(), _cache={})
    treatment = Treatment(baumgarte=mb.Baumgarte(20.0, 30.0))
    found, expected = (
        forward_dynamics_derivatives(each, treatment=treatment) for each in (touching, plain)
    )
    rng, mask = np.random.default_rng(0), np.ones(touching.nc)
    for share in (0.0, 0.3):
        at = poses(system, rng)
        mask[rng.random(touching.nc) < share] = 0.0
        at |= {"f": 10 * rng.standard_normal(system.nv), "mask": mask}
        mine, other = found(**at), expected(**at)
        for key in mine:
            size = 1 + np.abs(np.array(other[key])).max()
            pair = (np.array(each[key]) / size for each in (mine, other))
            np.testing.assert_allclose(*pair, atol=1e-9, err_msg=key)


def poses(system, rng):
    q = system.integrate(
        np.array(system.tree.keyframes["stand"]), 0.2 * rng.standard_normal(system.nv)
    )
    return {"q": np.array(q).ravel(), "v": rng.standard_normal(system.nv)}


def test_rows_have_the_names_of_contacts_and_switch_by_them():
    system, _, _ = quadruped()
    touching = with_contacts(system, LEGS).with_mask()
    assert touching.constraint_names[:4] == ("FL.n", "FR.n", "RL.n", "RR.n")
    stand, still = np.array(system.tree.keyframes["stand"]), np.zeros(system.nv)
    mask = [0.0 if name.startswith("FL.") else 1.0 for name in touching.constraint_names]
    found = motion_of(touching)(q=stand, v=still, f=still, mask=mask)
    f = np.array(contact_force_fun(touching, LEGS)(stand, found["lam"])).reshape(4, 3)
    assert np.abs(f[0]).max() == 0
    assert np.abs(f[1:]).max() > 1.0


def test_contacts_of_one_body_switch_together():
    system, _, _ = humanoid()
    touching = with_contacts(system, SOLES).with_mask()
    mask = mb.row_mask(touching, {"left_foot_4": 0})  # has no row of its own
    assert mask.tolist().count(0.0) == 6
    stand, still = np.array(system.tree.keyframes["stand"]), np.zeros(system.nv)
    found = motion_of(touching)(q=stand, v=still, f=still, mask=mask)
    f = np.array(contact_force_fun(touching, SOLES)(stand, found["lam"])).reshape(8, 3)
    assert np.abs(f[:4]).max() == 0
    assert np.abs(f[4:]).max() > 1.0


@pytest.mark.long
def test_a_system_with_parameters_has_contacts_at_any_of_their_numbers():
    """Its rows and forces are those of the system that was read with the numbers."""
    heavy = mb.read_mjcf(models.path("quadruped"), parameters=["body:trunk:mass"])
    p = 2 * np.array(heavy.parameter_values())
    stand, still = np.array(heavy.at().tree.keyframes["stand"]), np.zeros(heavy.nv)
    exposed, plain = (
        with_contacts(heavy, LEGS),
        with_contacts(heavy.at({"body:trunk:mass": p}), LEGS),
    )
    one = motion_of(exposed)(q=stand, v=still, f=still, p=p)["lam"]
    other = motion_of(plain)(q=stand, v=still, f=still)["lam"]
    np.testing.assert_allclose(np.array(one), np.array(other), rtol=1e-9, atol=1e-9)
    f = np.array(contact_force_fun(exposed, LEGS)(np.append(stand, p), one))
    np.testing.assert_allclose(f, np.array(contact_force_fun(plain, LEGS)(stand, other)), rtol=1e-9)


def test_what_is_no_contact_of_the_system_is_refused():
    system, _, _ = quadruped()
    with pytest.raises(ProblemError, match="slides"):
        with_contacts(system, [mb.Contact("FL", slides=True)])
    with pytest.raises(UnknownNameError, match="paw"):
        with_contacts(system, [mb.Contact("paw")])
    with pytest.raises(ProblemError, match=r"a row 'FL.n' already"):
        with_contacts(with_contacts(system, LEGS), LEGS[:1])
    with pytest.raises(ProblemError, match="no rows of contact 'FL'"):
        contact_force_fun(system, LEGS)
