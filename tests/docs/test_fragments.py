"""Snippets that begin in the middle of a program run in an empty folder, with that beginning."""

import pytest
from support.pages import DOCS
from support.snippets import snippets_of

FOUR_BAR = """
import casadi as ca
import numpy as np
import mbcasadi as mb
system = mb.read_mjcf("four_bar")
q0 = q = system.tree.q0
v0 = v = a = f = np.zeros(system.nv)
"""
SMALL_LAW = """
import mbcasadi as mb
system = mb.read_mjcf("four_bar")
ctl = law = mb.control.laws.gravity_compensated_pd(
    system, mb.control.PostureTask(("crank",)), stiffness=1.0, damping=0.1
)
"""
STANDING = """
import numpy as np
import mbcasadi as mb
from mbcasadi.control import FrameTask, InverseDynamicsQP
system = mb.read_mjcf("quadruped")
tasks = [FrameTask("trunk", kp=400.0)]
feet = [mb.Contact(name, friction=0.6) for name in ("FL", "FR", "RL", "RR")]
"""
RUN = {
    "inverse-dynamics": ("", [0]),
    "inverse-dynamics: equations": (
        "import casadi as ca, numpy as np, mbcasadi as mb\n"
        "from mbcasadi.control import FrameTask, InverseDynamicsQP\n",
        [5],
    ),
    "contacts": ("", [0]),
    "parameters": ("", [0, 1, 2]),
    "models": (FOUR_BAR, [0, 1, 3]),
    "limits": (STANDING, [2]),
    "identification": (FOUR_BAR, [0]),
    "simulation": (FOUR_BAR, [2]),
    "export": (SMALL_LAW, [0]),
}  # fmt: skip
"""Page of the guides → what comes before, and the numbers of its snippets."""


@pytest.mark.parametrize("case", RUN)
def test_the_snippets_of_a_page_run_in_an_empty_folder(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before, numbers = RUN[case]
    snippets = snippets_of(DOCS / "guides" / f"{case.partition(':')[0]}.md", "python")
    names = {}
    exec(before, names)
    for number in numbers:
        code = snippets[number].code
        exec(compile(code, snippets[number].place, "exec"), names)
    assert capsys.readouterr().err == ""
