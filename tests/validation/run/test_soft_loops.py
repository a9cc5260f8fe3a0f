"""Controllers of overconstrained loops in a plant that is as soft as MuJoCo's defaults."""

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.system.closing import close_state

SWING, FREQUENCY = 0.5, 0.5  # rad, Hz
STIFF = '<equality solref="0.004 1" solimp="0.99 0.999 0.001"/>'


@pytest.fixture(scope="module")
def bennett():
    text = models.path("spatial_loop").read_text()
    assert STIFF in text
    return text.replace(STIFF, "")


def swing(law, q0):
    """Return the reference of the first joint: there and back, from rest."""
    rest, w = law.reference_at(q0), 2 * np.pi * FREQUENCY

    def reference(t):
        wave = [1 - np.cos(w * t), w * np.sin(w * t), w * w * np.cos(w * t)]
        return rest + SWING * np.array(wave)

    return reference


def run(model, **options):
    system = mb.read_mjcf(model)
    joint = system.tree.joints[0].name
    law = mb.control.InverseDynamicsQP(
        system, [mb.control.PostureTask((joint,), kp=400.0)], **options
    )
    report = mb.validate(law, model, 1.0, reference=swing(law, system.tree.q0))
    return report.runs[0]


def share_where_loops_are_closed(run, model):
    """Return the error of the joint in the nearest state with closed loops, over its amplitude.

    That in the plant is larger by what the gap of the soft loop turns the joint.
    """
    system, record = mb.read_mjcf(model), run.recording
    q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    closed = close_state(system, q, v, ca.SX.ones(system.nc)).q
    angle = np.array(ca.Function("closed", [q, v], [closed[0]])(record.q.T, record.v.T)).ravel()
    error = record.monitor["target"][:, 0] - angle
    return np.sqrt(np.mean(error**2)) / run.tracking[0].amplitude


def test_a_spatial_loop_of_rank_three_in_six_rows_follows_although_it_is_open_by_a_gap(bennett):
    found = run(bennett)
    assert found.recording.closure.max() > 1e-5  # m: the plant is soft
    assert found.statuses == {"solved": 1000}
    assert share_where_loops_are_closed(found, bennett) < 1e-3
    assert 1e-3 < found.metric("tracking.rms_share") < 2e-3


@pytest.mark.long
def test_the_gap_does_not_hold_the_loop_whatever_the_rank_tolerance(bennett):
    """At the measured pose the redundant rows are independent: the state is closed first."""
    assert share_where_loops_are_closed(run(bennett, rank_tol=1e-8), bennett) < 1e-3
