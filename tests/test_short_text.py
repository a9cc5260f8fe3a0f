"""How objects show themselves: one line, and a table for a notebook."""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import control, models, mpc
from mbcasadi.short_text import LONGEST, summarised, value_text


@summarised
@dataclass(frozen=True)
class Several:
    """A few fields with defaults."""

    name: str
    gains: np.ndarray = field(default_factory=lambda: np.zeros(2))
    rank: int = 3


@summarised
@dataclass(frozen=True)
class Own:
    """A class that says itself what it shows."""

    name: str

    def _summary(self):
        return {"": self.name, "long": "x" * 1000}


def test_a_line_leaves_out_defaults_and_a_table_does_not():
    assert repr(Several("arm")) == "Several(name=arm)"
    assert repr(Several("arm", np.array([1.0, 0.25]))) == "Several(name=arm, gains=[1, 0.25])"
    table = Several("arm")._repr_html_()
    for text in ("<caption>Several</caption>", "rank", "[0, 0]"):
        assert text in table


def test_a_line_is_cut_and_html_is_escaped():
    shown = repr(Own("leg"))
    assert shown.startswith("Own(leg, long=xxx")
    assert len(shown) <= LONGEST
    table = Own("<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in table
    assert "&lt;script&gt;" in table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(9.0), "[0, 1, 2, 3, 4, 5, ... 3 more]"),
        (np.zeros((3, 4)), "3×4"),
        (np.float64(np.pi), "3.142"),
        (True, "True"),
        ({"a": 1.0, "b": [1, 2]}, "{a: 1, b: [1, 2]}"),
        (ca.SX.sym("x", 2, 3), "SX 2×3"),
        (ca.Function("foo", [], []), "foo"),
        (control.PostureTask(name="arm"), "PostureTask 'arm'"),
    ],
)
def test_a_value_is_shown_shortly(value, text):
    assert value_text(value) == text


def test_what_a_notebook_shows_of_a_system_and_of_its_controllers():
    """Each kind that a person makes has a short line and a table with its name."""
    system = mb.read_mjcf(models.path("four_bar"))
    held = mb.equilibrium(system)
    linear = mb.linearize(system, held)
    law = control.regulators.lqr(linear, np.ones(6), 1.0)
    qp = control.InverseDynamicsQP(system, [control.PostureTask(("crank",))])
    ocp = mpc.optimal_control_problem(system, 3, 0.01, [mpc.Cost(Q=np.ones(6), R=1.0)])
    solved = (qp.solve(held.q, np.zeros(3)), law.solve(held.q, np.zeros(3)))
    motion = mb.simulate(system, held.q, np.zeros(3), 1e-3)
    made = (system, system.tree, system.coverage, held, linear, law, law.controller, qp, ocp)
    for each in (
        *made,
        *solved,
        motion,
        mpc.linear_mpc(linear, mpc.LinearOptions(3, np.ones(6), 1.0)),
    ):
        assert len(repr(each)) <= LONGEST
        assert type(each).__name__ in each._repr_html_()
        assert repr(each).startswith(type(each).__name__)
    assert repr(system) == "System('four_bar', nq=3, nv=3, nu=1, na=0, nc=3)"
    assert "status=equations hold, within limits, u=[" in repr(solved[1])
