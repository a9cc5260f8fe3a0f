"""One record on x86-64 by gcc and clang, on Windows under Wine, on AArch64: equal numbers.

With `-ffp-contract=off` no product and sum become one operation, and the bits are equal as far as
the C libraries' functions agree.
"""

import numpy as np
import pytest
from programs import MAKERS, difference, other_sines, replay, require

# One rounding in place of two moved u of the quadruped by 1.4e-7, as much as the next number of
# each angle of q does on x86-64 (1.6e-7). Chosen after this figure.
CONTRACTED = 1e-6
EXACT = ("-ffp-contract=off",)
WINE = "/usr/lib/wine"


@pytest.mark.parametrize("name", MAKERS)
def test_the_record_is_that_of_a_controller_at_work(name, recorded, reference):
    found, manifest = reference(name), recorded(name).project.manifest
    at = [s["name"] for s in manifest["outputs"]].index("status")
    column = sum(s["size"] for s in manifest["outputs"][:at])
    status = found.outputs[:, column]
    assert np.mean(status == 0) > 0.9
    assert np.ptp(found.outputs[:, 0]) > 1e-3


@pytest.mark.parametrize("name", MAKERS)
def test_clang_gives_the_bits_of_gcc(name, recorded, reference, tmp_path):
    clang = require("clang", "clang")
    found = replay(recorded(name), tmp_path, (clang, *EXACT))
    assert difference(found, reference(name)) == 0


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("contract", ["off", "fast"])
def test_aarch64_gives_the_numbers_of_x86(name, contract, recorded, reference, tmp_path):
    compiler = require("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    emulator = require("qemu-aarch64", "qemu-user")
    flags = ("-static", f"-ffp-contract={contract}")
    found = replay(recorded(name), tmp_path, (compiler,), (emulator,), flags)
    gap = difference(found, reference(name))
    print(name, contract, gap)
    assert gap == 0 if contract == "off" else gap < CONTRACTED


@pytest.mark.parametrize("name", MAKERS)
def test_windows_gives_the_numbers_of_linux(name, recorded, reference, tmp_path, monkeypatch):
    compiler = require("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")
    wine = require("wine64", "wine64", WINE)
    monkeypatch.setenv("WINEDEBUG", "-all")
    found = replay(recorded(name), tmp_path, (compiler, *EXACT), (wine,), links=())
    gap = difference(found, reference(name))
    print(name, gap)
    assert gap < other_sines(recorded(name), tmp_path)
