"""Rows that a level presses against: which are held, and soles that need it, in Python and in C."""

import casadi as ca
import numpy as np
import pytest
from support.mechanisms_of_control import system_of

import mbcasadi as mb
from mbcasadi.codegen import export_c
from mbcasadi.control import ComTask, FrameTask, InverseDynamicsQP, PostureTask
from mbcasadi.control.inverse_dynamics.priorities.pressed_rows import hold_pressed
from mbcasadi.description.status import Status

ROUNDING = 1e-9
TILT = 1e-8  # of two soles that are nearly parallel
SOLES = [f"{side}_foot_{k}" for side in ("left", "right") for k in (1, 2, 3, 4)]
LEVELS = [["com"], ["turn"], ["posture"]]
SAME = 1e-6  # of a level, relative: solvers end at 1e-9, rows that nearly depend enlarge it
STATES = 14  # with seed 0 the last one has two soles pressed against each other

OPPOSITE = [[1.0, 0, 0, 0], [-1.0, TILT, 0, 0]]
ACROSS, OBLIQUE = [0.0, 0, 1, 0], [1.0, 0, 1, 0]
CASES = {
    "two opposite": ([*OPPOSITE, ACROSS], [2.0, 2.0, 0.0], [1, 1, 0]),
    "what depends on them": ([*OPPOSITE, [2.0, 0, 0, 0]], [2.0, 2.0, 0.0], [1, 1, 1]),
    "a multiplier of rounding": ([*OPPOSITE, OBLIQUE], [2.0, 2.0, 1e-8], [1, 1, 0]),
    "one alone": ([OPPOSITE[0], ACROSS], [2.0, 0.0], [0, 0]),
    "no balance": ([OPPOSITE[0], ACROSS], [2.0, 2.0], [0, 0]),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_held_where_multipliers_prove_that_no_step_changes_them(case):
    rows, lam, expected = CASES[case]
    m = len(rows)
    values = [np.eye(4), np.array(rows), np.array(lam), np.ones(1), np.zeros(m)]
    symbols = [ca.MX.sym(f"s{i}", *ca.DM(x).shape) for i, x in enumerate(values)]
    held = ca.Function("held", symbols, list(hold_pressed(*symbols, 0)))
    Z, gone = (np.array(x) for x in held(*values))
    assert list(gone.ravel()) == expected
    assert np.linalg.matrix_rank(Z, 1e-6) == (3 if sum(expected) else 4)
    changes = np.abs(Z.T @ np.array(rows)[gone.ravel() > 0].T)
    assert changes.size == 0 or changes.max() <= 2 * TILT + ROUNDING


def test_rows_of_other_unknowns_are_not_held():
    sizes = {"Z": (3, 3), "C": (2, 4), "lam": (2, 1), "size": (1, 1), "gone": (2, 1)}
    symbols = [ca.MX.sym(name, *size) for name, size in sizes.items()]
    held = ca.Function("held", symbols, list(hold_pressed(*symbols, 0)))
    C = np.array([[1.0, 0, 0, 1], [-1.0, 0, 0, -1]])
    Z, gone = held(np.eye(3), C, [1.0, 1.0], 1.0, [0.0, 0.0])
    assert np.array_equal(np.array(Z), np.eye(3))
    assert not np.array(gone).any()


def test_soles_without_linear_rows_have_none_to_hold():
    """The law of a robot without limits whose feet have quadratic cones."""
    Z, C, gone = ca.MX.eye(3), ca.MX.ones(3, 3), ca.MX.zeros(3)
    kept, held = hold_pressed(Z, C, ca.MX.ones(3), ca.MX(1), gone, 1)
    assert np.array_equal(ca.evalf(kept).full(), np.eye(3))
    assert not ca.evalf(held).full().any()


@pytest.mark.long
def test_levels_on_two_soles_are_solved_in_python_and_in_c(tmp_path):
    tasks = [
        ComTask(kp=100.0),
        FrameTask("pelvis", kind="body", position="", name="turn"),
        PostureTask(kp=50.0),
    ]
    contacts = [mb.Contact(sole, friction=0.3) for sole in SOLES]
    law = InverseDynamicsQP(
        system_of("humanoid"), tasks, contacts, internal_forces="wrench", levels=LEVELS
    )
    compiled = export_c(law, tmp_path / "law").load()
    rng, q = np.random.default_rng(0), np.array(law.system.tree.keyframes["stand"])
    reference, mask = np.array(law.reference_at(q)).ravel(), np.ones(len(law.mask_names))
    for k in range(STATES):
        v, ref = 0.1 * rng.standard_normal(law.system.nv), reference.copy()
        ref[law.reference_slices["com.acceleration"]] += 8.0 * rng.standard_normal(3)
        out = compiled(q=q, v=v, ref=ref, mask=mask, z=law.z0)
        assert float(out["status"]) == Status.SOLVED, k
        solution = law.solve(q, v, ref)
        assert solution.status == Status.SOLVED, k
        own, levels = np.array(list(solution.levels.values())), np.array(out["levels"]).ravel()
        assert np.allclose(own, levels, rtol=SAME, atol=SAME * own.max()), (k, own, levels)
