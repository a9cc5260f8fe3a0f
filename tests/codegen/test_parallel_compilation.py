"""Flags that make a compiler quicker, at the same time on several cores, change no result."""

import casadi as ca
import numpy as np
import pytest

from mbcasadi.codegen import compiler_flags, export_c
from mbcasadi.codegen.cache.keys import build_key
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.codegen.compiler_flags import side_by_side_flags, straight_line_flags


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
    monkeypatch.setattr("mbcasadi.codegen.compiler_flags.usable_cores", lambda: 2)
    side_by_side_flags.cache_clear()
    flags = side_by_side_flags(find_compiler())
    if not flags:
        pytest.skip("needs GCC, and make to start its processes")
    project = export_c(function, tmp_path / "c")
    assert not {*flags} & {*project.build().command}
    plain = project.load()
    monkeypatch.setattr(compiler_flags, "LONG", 1)
    assert {*flags} <= {*project.build().command}
    assert build_key(project.build().command) is not None  # so it is compiled once
    assert not {*flags} & {*project.build(flags=["-O2"]).command}  # flags of a user alone
    x = np.random.default_rng(0).standard_normal(40)
    np.testing.assert_allclose(project.load()(x), plain(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(project.load()(x), function(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("unknown", "flags_of"), [("-flto*", side_by_side_flags), ("-fno-*", straight_line_flags)]
)
def test_a_compiler_that_cannot_gets_no_such_flags(tmp_path, unknown, flags_of):
    none = tmp_path / "cc"
    none.write_text(
        f'#!/bin/sh\nfor each in "$@"; do case $each in {unknown}) exit 1;; esac; done\n'
        'exec cc "$@"\n'
    )
    none.chmod(0o700)
    assert flags_of((str(none),)) == ()


def test_passes_that_find_nothing_are_left_out_at_the_highest_level_alone(function, tmp_path):
    flags = straight_line_flags(find_compiler())
    if not flags:
        pytest.skip("needs GCC")
    command = compiler_flags.compile_command
    assert {*flags} <= {*command(tmp_path, ["-O3"], None, None)}
    assert not {*flags} & {*command(tmp_path, ["-O1"], None, None)}
    assert not {*flags} & {*command(tmp_path, ["-O3"], None, ["-O3"])}  # flags of a user alone
    project = export_c(function, tmp_path / "c")
    loaded = project.load(flags=["-O3", *flags])
    x = np.random.default_rng(0).standard_normal(40)
    np.testing.assert_allclose(loaded(x), function(x), rtol=1e-12, atol=1e-12)
