"""The library of a long file is compiled in parts at the same time, and computes the same."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen import builder, export_c
from mbcasadi.codegen.cache.keys import build_key
from mbcasadi.codegen.compiler import find_compiler, side_by_side_flags


@pytest.fixture(scope="module")
def function():
    x = ca.SX.sym("x", 40)
    y = x
    for k in range(12):
        y = ca.sin(y + k) * ca.vertcat(y[1:], y[:1]) + x
    return ca.Function("woven", [x], [y], ["x"], ["y"])


def test_a_long_file_is_compiled_side_by_side_and_computes_the_same(
    function, tmp_path, monkeypatch
):
    monkeypatch.setattr("mbcasadi.codegen.compiler.usable_cores", lambda: 2)
    side_by_side_flags.cache_clear()
    flags = side_by_side_flags(find_compiler())
    if not flags:
        pytest.skip("needs GCC, and make to start its processes")
    project = export_c(function, tmp_path / "c")
    assert not {*flags} & {*project.build().command}
    plain = project.load()
    monkeypatch.setattr(builder, "LONG", 1)
    assert {*flags} <= {*project.build().command}
    assert build_key(project.build().command) is not None  # so it is compiled once
    assert not {*flags} & {*project.build(flags=["-O2"]).command}  # flags of a user alone
    x = np.random.default_rng(0).standard_normal(40)
    np.testing.assert_allclose(project.load()(x), plain(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(project.load()(x), function(x), rtol=1e-12, atol=1e-12)


def test_a_compiler_that_cannot_gets_no_such_flags(tmp_path):
    none = tmp_path / "cc"
    none.write_text(
        '#!/bin/sh\nfor each in "$@"; do case $each in -flto*) exit 1;; esac; done\nexec cc "$@"\n'
    )
    none.chmod(0o700)
    assert side_by_side_flags((str(none),)) == ()
