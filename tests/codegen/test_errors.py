"""What cannot be exported is refused with advice, and leaves nothing half-written."""

import dataclasses
import os
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from codegen_problems import least_distance_controller, planar_arm, saturated_controller

import mbcasadi.codegen as codegen
import mbcasadi.errors as err
from mbcasadi.codegen import compiler
from mbcasadi.codegen.targets import cortex_m7
from mbcasadi.codegen.targets.replay import COUNTS


def contents_of(folder: Path) -> dict[str, bytes]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


# -- compilers


def test_without_a_compiler_the_error_names_what_to_install(tmp_path, monkeypatch):
    project = codegen.export_c(planar_arm(), tmp_path / "out")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(err.CompilerError, match=r"no C compiler on the PATH.*install one.*set CC"):
        project.load()


def test_a_compiler_that_is_not_there_is_named(tmp_path, monkeypatch):
    project = codegen.export_c(planar_arm(), tmp_path / "out")
    monkeypatch.setenv("CC", "no-such-cc -m64")
    with pytest.raises(
        err.CompilerError, match=r"'no-such-cc -m64'.*environment's CC.*not on the PATH"
    ):
        project.load()
    with pytest.raises(err.CompilerError, match=r"'nor-this-one' \(cc=\)"):
        project.load(cc="nor-this-one")


def test_a_failed_build_keeps_the_compilers_message_and_leaves_no_library(tmp_path):
    project = codegen.export_c(planar_arm(), tmp_path / "out")
    project.source.write_text(project.source.read_text() + "\nint broken = nowhere;\n")
    with pytest.raises(err.CompilerError, match="nowhere"):
        project.load()
    assert list((project.folder / "build").iterdir()) == []


def test_ctrl_c_ends_the_compiler_and_leaves_nothing(tmp_path, monkeypatch):
    started = []

    def interrupted(process):
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "_wait", interrupted)
    endless = (sys.executable, "-c", "import time; time.sleep(600)")
    with pytest.raises(KeyboardInterrupt):
        compiler.compile_c(endless, tmp_path / "libx.so")
    assert started[0].poll() is not None
    assert list(tmp_path.iterdir()) == []


# -- folders


def test_an_empty_folder_is_filled_and_a_file_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    codegen.export_c(planar_arm(), tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(err.ExportError, match="is no folder"):
        codegen.export_c(planar_arm(), tmp_path / "file", overwrite=True)


def test_a_read_only_folder_is_refused(tmp_path):
    parent = tmp_path / "locked"
    parent.mkdir()
    parent.chmod(0o500)
    if os.geteuid() == 0:  # root may write anywhere but here
        parent = Path("/proc/self")
    with pytest.raises(err.ExportError, match=r"cannot write .*out: .*can be written"):
        codegen.export_c(planar_arm(), parent / "out")


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("method", ["write_bytes", "rename"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_export_leaves_the_folder_as_it_was(
    error, method, earlier, tmp_path, monkeypatch
):
    if earlier:
        codegen.export_c(planar_arm(), tmp_path / "out")
    before, calls = contents_of(tmp_path), [0]
    original = getattr(Path, method)
    last = 3 if method == "write_bytes" else 2 if earlier else 1

    def interrupt(path, *args):
        calls[0] += 1
        if calls[0] == last:
            raise error
        return original(path, *args)

    monkeypatch.setattr(Path, method, interrupt)
    expected = err.ExportError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        codegen.export_c(saturated_controller(), tmp_path / "out", overwrite=True)
    assert contents_of(tmp_path) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == (["out"] if earlier else [])


# -- names and parts


@pytest.mark.parametrize(
    "name", ["4bar", "a-b", "", "double", "sin", "main", "_x", "größe", "a b", "Aux"]
)
def test_an_illegal_c_identifier_is_refused(name, tmp_path):
    controller = dataclasses.replace(saturated_controller(), name=name)
    with pytest.raises(err.ExportError, match=r"cannot name a C function.*pass another name="):
        codegen.export_c(controller, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert codegen.export_c(controller, tmp_path / "out", name="fine").name == "fine"


def test_an_object_of_another_kind_is_refused(tmp_path):
    with pytest.raises(err.ProblemError, match="expected a Controller"):
        codegen.export_c("controller", tmp_path / "out")


def test_an_object_that_carries_its_controller_is_exported(tmp_path):
    @dataclasses.dataclass
    class Carrier:
        controller: object

    project = codegen.export_c(Carrier(saturated_controller()), tmp_path / "out")
    assert project.name == "pd"


def test_parts_that_do_not_fit_are_refused(tmp_path):
    good = least_distance_controller(2, 3)
    plain = dataclasses.replace
    stages = good.stages
    other = least_distance_controller(2, 4).stages
    cases = [
        (plain(good, z0=np.zeros(2)), "z0 has 2 numbers.*z has 3"),
        (plain(good, inputs=good.inputs[:2]), "describes the signals"),
        (plain(good, stages=plain(stages, finish=stages.build)), "the inputs of finish"),
        (plain(good, stages=plain(stages, build=other.build)), "lam_a has 3 entries, expected 4"),
        (plain(good, stages=other), "'z_next' of finish"),
    ]
    for controller, message in cases:
        with pytest.raises(err.ExportError, match=message):
            codegen.export_c(controller, tmp_path / "out")
    with pytest.raises(err.ShapeError, match="u_min has shape"):
        codegen.export_c(plain(good, u_min=np.zeros(5)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_example_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(err.UnknownNameError, match=r"unknown input 'x'.*'q', 'v', 'z'"):
        codegen.export_c(saturated_controller(), tmp_path / "out", example={"x": 1})
    with pytest.raises(err.ShapeError, match=r"q has shape \(3,\), expected \(2,\)"):
        codegen.export_c(saturated_controller(), tmp_path / "out", example={"q": [1, 2, 3]})


# -- Functions without generated C


class Outside(ca.Callback):
    """A Python function behind CasADi's face."""

    def __init__(self):
        ca.Callback.__init__(self)
        self.construct("outside", {})

    def get_n_in(self):
        return 1

    def get_n_out(self):
        return 1

    def eval(self, arg):
        return [ca.sin(arg[0])]


def law_of(build) -> ca.Function:
    p = ca.MX.sym("p", 2)
    return ca.Function("law", [p], [build(p)], ["p"], ["x"])


def quadratic(plugin, options=None):
    x, p = ca.MX.sym("x", 2), ca.MX.sym("p", 2)
    problem = {"x": x, "p": p, "f": ca.sumsqr(x - p)}
    make = ca.nlpsol if plugin == "ipopt" else ca.qpsol
    return make("solver", plugin, problem, options or {"print_time": False})


def test_a_python_callback_has_no_c(tmp_path):
    outside = Outside()
    with pytest.raises(err.ExportError, match="cannot generate C for a part of 'law_law'"):
        codegen.export_c(law_of(lambda p: outside(p[0])), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("plugin", "header"), [("ipopt", "IpStdCInterface.h"), ("daqp", "daqp")])
def test_a_solver_of_a_foreign_library_is_refused(plugin, header, tmp_path):
    solver = quadratic(plugin)
    with pytest.raises(err.ExportError, match=f"needs .*{header}.*allocates.*`stages`"):
        codegen.export_c(law_of(lambda p: solver(p=p)["x"]), tmp_path / "out")


def test_a_linear_solver_without_c_is_refused(tmp_path):
    with pytest.raises(err.ExportError, match="CsparseInterface does not support code generation"):
        codegen.export_c(law_of(lambda p: ca.solve(p @ p.T, p, "csparse")), tmp_path / "out")


def test_an_external_function_is_refused(tmp_path):
    inner = codegen.export_c(planar_arm(), tmp_path / "inner").load()
    with pytest.raises(err.ExportError, match="external function 'arm"):
        codegen.export_c(law_of(lambda p: inner(p, p)[1]), tmp_path / "out")


def test_the_stack_of_a_firmware_is_what_its_program_reports(tmp_path, monkeypatch):
    """The emulator is replaced by a program that writes what a firmware does."""
    manifest = codegen.export_c(saturated_controller(), tmp_path / "out").manifest
    width = sum(signal["size"] for signal in manifest["outputs"]) + COUNTS
    program = "import numpy; numpy.array([1234], '<u4').tofile('report'); "
    program += f"numpy.zeros({width}).tofile('outputs')"
    monkeypatch.setattr(cortex_m7, "EMULATOR", (sys.executable, "-c", program))
    state = dict.fromkeys("qv", np.zeros((1, 2)))
    run = cortex_m7.run_firmware(manifest, tmp_path, state)
    assert run.stack_bytes == 1234
    assert len(run.replay.outputs) == 1


def test_a_record_for_a_program_has_no_state(tmp_path):
    """The firmware and the page start at z0: rows with z would be read as other inputs."""
    project = codegen.export_c(least_distance_controller(2, 3), tmp_path / "out")
    rows = {"A": np.zeros((4, 6)), "z": np.zeros((4, 3))}
    with pytest.raises(err.ExportError, match=r"the record has z, .* leave z out"):
        project.cortex_m7(tmp_path / "m7", inputs=rows)
    with pytest.raises(err.ExportError, match=r"the record has z, .* leave z out"):
        project.web_page(tmp_path / "page.html", rows, np.zeros((4, 2)))
