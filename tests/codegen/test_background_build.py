"""C that another process generates and compiles is that of this one; its errors arrive here."""

import casadi as ca
import pytest

from mbcasadi.codegen import export_c
from mbcasadi.codegen.background_build import BackgroundBuild, can_build_in_background
from mbcasadi.errors import ExportError
from mbcasadi.linalg import loops
from mbcasadi.linalg.side_by_side import side_by_side

pytestmark = pytest.mark.skipif(
    not can_build_in_background(), reason="processes cannot be copied here"
)


def law_with_loops() -> ca.Function:
    """Return a law whose C has a loop, and vectors of several sets of numbers."""
    s = ca.SX.sym("s", 3)
    together = side_by_side(ca.Function("of_one_set", [s], [ca.sqrt(1 + s**2)]), 8)
    A, B, x = ca.MX.sym("A", 8, 5), ca.MX.sym("B", 5, 7), ca.MX.sym("x", 8, 3)
    outputs = [loops.product(A, B), together(x)]
    return ca.Function("law", [A, B, x], outputs, ["A", "B", "x"], ["AB", "roots"])


def test_the_c_of_another_process_is_that_of_this_one(tmp_path):
    law = law_with_loops()
    (tmp_path / "other").mkdir()
    build = BackgroundBuild(law, tmp_path / "other")
    own = export_c(law, tmp_path / "own").source.read_text()
    assert "loops_product(8, 5, 7," in own
    assert "PACK_AT(" in own
    project = build.project()
    assert build.is_done
    assert project.source.read_text() == own
    assert project.build().seconds == 0.0  # it is there


def broken(*_):
    """Fail otherwise than by an exception of ours."""
    return 1 / 0


def test_errors_of_the_other_process_are_those_of_an_export(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ExportError, match="'no-such-compiler'"):
        BackgroundBuild(law_with_loops(), folders[0]).project()
    monkeypatch.setattr("mbcasadi.codegen.background_build.export_c", broken)
    with pytest.raises(ExportError, match=r"ended with status 1:\n(.*\n)*ZeroDivisionError"):
        BackgroundBuild(law_with_loops(), folders[1]).project()


def test_a_build_that_nobody_waits_for_is_stopped(tmp_path):
    build = BackgroundBuild(law_with_loops(), tmp_path)
    build.stop()
    assert build.is_done
    build.stop()
