"""The co-simulation unit of FMI 3.0: its files, and its functions against the C."""

import ctypes
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import casadi as ca
import numpy as np
import pytest
from plugin_problems import hand_made

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.callers.fmu import platform_name
from mbcasadi.errors import ExportError
from mbcasadi.validation import demo
from mbcasadi.validation.spec import build_experiment, example_inputs, read_spec

OK, ERROR = 0, 3
TICKS = 40
Doubles = ctypes.POINTER(ctypes.c_double)


def four_bar(folder, **options):
    spec = read_spec(Path(demo.__file__).parent / "four_bar.toml")
    experiment = build_experiment(spec, Path(models.path("four_bar")))
    example = example_inputs(experiment)[""]
    return mb.export_c(experiment.all_laws[""], folder, example=example, fmu=True, **options)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return four_bar(tmp_path_factory.mktemp("fmu") / "out")


def archive(project):
    return project.folder / f"{project.name}.fmu"


class Unit:
    """One instance of a unit, by the C functions of the standard."""

    def __init__(self, library, description):
        self.references = {
            v.get("name"): int(v.get("valueReference")) for v in description.find("ModelVariables")
        }
        self.library = library
        library.fmi3InstantiateCoSimulation.restype = ctypes.c_void_p
        token = description.get("instantiationToken").encode()
        self.instance = ctypes.c_void_p(self.instantiate(token))

    def instantiate(self, token):
        flags = [ctypes.c_bool(False)] * 4
        none = ctypes.c_void_p(None)
        return self.library.fmi3InstantiateCoSimulation(
            b"unit", token, b"", *flags, none, ctypes.c_size_t(0), none, none, none
        )

    def _call(self, function, names, array):
        references = (ctypes.c_uint32 * len(names))(*(self.references[n] for n in names))
        size = ctypes.c_size_t(len(names))
        return getattr(self.library, function)(self.instance, references, size, array, size)

    def set(self, names, values):
        return self._call("fmi3SetFloat64", names, (ctypes.c_double * len(names))(*values))

    def get(self, names):
        values = (ctypes.c_double * len(names))()
        assert self._call("fmi3GetFloat64", names, values) == OK
        return np.array(values)

    def code(self, name):
        value = (ctypes.c_int32 * 1)()
        assert self._call("fmi3GetInt32", [name], value) == OK
        return value[0]

    def initialise(self, start=0.0):
        enter = self.library.fmi3EnterInitializationMode
        times = ctypes.c_double(start), ctypes.c_bool(False), ctypes.c_double(0.0)
        enter(self.instance, ctypes.c_bool(False), ctypes.c_double(0.0), *times)
        self.library.fmi3ExitInitializationMode(self.instance)

    def step(self, time, length):
        marks = [ctypes.byref(ctypes.c_bool()) for _ in range(3)]
        last = ctypes.c_double()
        times = ctypes.c_double(time), ctypes.c_double(length), ctypes.c_bool(True)
        return self.library.fmi3DoStep(
            self.instance, *times, *marks, ctypes.byref(last)
        ), last.value


@pytest.fixture
def unit(project, tmp_path):
    with zipfile.ZipFile(archive(project)) as files:
        files.extractall(tmp_path)
    (binary,) = (tmp_path / "binaries" / platform_name()).iterdir()
    description = ElementTree.parse(tmp_path / "modelDescription.xml").getroot()
    return Unit(ctypes.CDLL(str(binary)), description)


def names_of(project, *signals):
    entries = {s["name"]: s for s in project.manifest["inputs"] + project.manifest["outputs"]}
    return [f"{s}.{c}" for s in signals for c in entries[s]["components"]]


def record(project, unit, start, first):
    """Run ticks from number `first` on; return u and the status of each."""
    period, rows = project.manifest["period"], []
    rng = np.random.default_rng(3)
    states = rng.uniform(-0.3, 0.3, (TICKS, 6))
    for k in range(first, TICKS):
        assert unit.set(names_of(project, "q", "v"), states[k]) == OK
        code, time = unit.step(start + k * period, period)
        assert (code, time) == (OK, start + (k + 1) * period)
        rows.append([*unit.get(names_of(project, "u", "residual")), unit.code("status")])
    return states, np.array(rows)


def test_steps_of_the_unit_are_ticks_of_the_c(project, unit):
    unit.initialise(start=2.0)
    assert np.array_equal(unit.get(names_of(project, "u")), project.manifest["u_safe"])
    states, rows = record(project, unit, 2.0, 0)
    memory, z = project.memory(), np.array(project.manifest["z0"])
    for q_v, row in zip(states, rows, strict=True):
        call = {"q": q_v[:3], "v": q_v[3:], "ref": np.zeros(3), "mask": [1.0], "z": z}
        outputs = project.step(memory, call)
        z = outputs["z_next"]
        expected = [*outputs["u"], *outputs["residual"], *outputs["status"]]
        assert np.array_equal(row, expected)
    assert unit.get(["time"])[0] == 2.0 + TICKS * project.manifest["period"]


def test_a_state_is_kept_stored_and_restored(project, unit):
    unit.initialise()
    library, instance = unit.library, unit.instance
    period = project.manifest["period"]
    for k in range(10):
        unit.set(["q.crank"], [0.1 * k])
        unit.step(k * period, period)
    state, again, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.fmi3GetFMUState(instance, ctypes.byref(state)) == OK
    assert library.fmi3SerializedFMUStateSize(instance, state, ctypes.byref(size)) == OK
    stored = (ctypes.c_uint8 * size.value)()
    assert library.fmi3SerializeFMUState(instance, state, stored, size) == OK
    _, onwards = record(project, unit, 0.0, 10)
    assert library.fmi3SetFMUState(instance, state) == OK
    assert np.array_equal(record(project, unit, 0.0, 10)[1], onwards)
    unit.library.fmi3Reset(instance)
    assert library.fmi3DeserializeFMUState(instance, stored, size, ctypes.byref(again)) == OK
    assert library.fmi3SetFMUState(instance, again) == OK
    assert np.array_equal(record(project, unit, 0.0, 10)[1], onwards)
    for kept in (state, again):
        assert library.fmi3FreeFMUState(instance, ctypes.byref(kept)) == OK
        assert not kept.value


def test_what_the_unit_cannot_do_is_an_error(project, unit):
    unit.initialise()
    period = project.manifest["period"]
    assert not unit.instantiate(b"another token")
    assert unit.step(0.0, 1.5 * period)[0] == ERROR
    assert unit.step(1.0, period)[0] == ERROR
    assert unit.set(["u.crank"], [1.0]) == ERROR
    assert unit.step(0.0, 2 * period) == (OK, 2 * period)  # two ticks on the same inputs
    empty = (ctypes.c_float * 1)()
    assert unit._call("fmi3GetFloat32", ["u.crank"], empty) == ERROR


def test_the_description_has_names_units_and_causality(project):
    with zipfile.ZipFile(archive(project)) as files:
        root = ElementTree.fromstring(files.read("modelDescription.xml"))
        sources = {name for name in files.namelist() if name.startswith("sources/")}
        assert files.read(f"sources/{project.name}.c") == project.source.read_bytes()
    expected = {"fmi3Functions.c", f"{project.name}.c", f"{project.name}.h"}
    assert sources == {f"sources/{name}" for name in (*expected, "buildDescription.xml")}
    assert root.find("CoSimulation").get("fixedInternalStepSize") == "0.001"
    variables = {v.get("name"): v for v in root.find("ModelVariables")}
    assert {n for n in variables if variables[n].get("causality") == "input"} == set(
        names_of(project, "q", "v", "ref", "mask")
    )
    assert variables["ref.posture.v.crank"].get("unit") == "rad/s"
    assert variables["mask.pin"].get("start") == "1.0"
    assert variables["status"].tag == "Int32"
    assert "3: bad input, safe output" in variables["status"].get("description")


def test_the_same_input_gives_the_same_bytes(project, tmp_path):
    assert archive(four_bar(tmp_path / "again")).read_bytes() == archive(project).read_bytes()


def test_without_a_compiler_the_unit_holds_its_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    lines = []
    project = mb.export_c(hand_made("sources"), tmp_path / "o", fmu=True, progress=lines.append)
    assert any("no compiler here" in line for line in lines)
    with zipfile.ZipFile(archive(project)) as files:
        assert not [name for name in files.namelist() if name.startswith("binaries")]


def test_what_is_no_unit_is_refused(tmp_path):
    x = ca.SX.sym("x")
    with pytest.raises(ExportError, match="has no period"):
        mb.export_c(ca.Function("f", [x], [2 * x]), tmp_path / "out", fmu=True)
    with pytest.raises(ExportError, match="would need DAQP's library"):
        four_bar(tmp_path / "out", solver="daqp")
    assert not (tmp_path / "out").exists()


def test_processors_and_systems_have_the_names_of_the_standard():
    assert platform_name("linux", "x86_64") == "x86_64-linux"
    assert platform_name("win32", "AMD64") == "x86_64-windows"
    assert platform_name("darwin", "arm64") == "aarch64-darwin"
    assert platform_name("aix", "powerpc") == ""
