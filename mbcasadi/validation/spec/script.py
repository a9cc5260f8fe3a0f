"""A controller's file as a Python script that builds, validates and exports the same."""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mbcasadi import control
from mbcasadi.annotations import hints_of, parts_of
from mbcasadi.control import InverseDynamicsQP, Task
from mbcasadi.errors import ProblemError
from mbcasadi.plant import Plant
from mbcasadi.system import read_mjcf
from mbcasadi.validation.spec.code_text import Call, arguments_of, entries_of, filled_list, literal
from mbcasadi.validation.spec.contact_text import contact_lines
from mbcasadi.validation.spec.inverse_dynamics import OF_A_TABLE
from mbcasadi.validation.spec.motion_text import command_lines, reference_lines
from mbcasadi.validation.spec.read import parse_spec
from mbcasadi.validation.spec.tables import by_type
from mbcasadi.validation.spec.templates import filled_template

Tables = Mapping[str, Any]

TASKS, PARTS = by_type(control, Task, "Task"), by_type(control, control.Part)
LIMITS: dict[str, type] = {
    "joint": control.JointLimits,
    "distance": control.DistanceLimits,
    "actuator": control.ActuatorLimits,
}
COMMON = {"type", "name", "period", "start", "ground", "contact", "validation"}
KNOWN = {
    "inverse_dynamics_qp": COMMON | {"task", "limits", "part", "options"} | OF_A_TABLE,
    "whole_body_mpc": COMMON | {"horizon", "gait", "command"},
}
"""Keys of a file that a script can have, by the type of controller."""

CONDITIONS = {"duration", "settle", "delay", "rigid", "perturb", "timestep", "criteria", "push"}
LONG, MOST_LINES = 48, 2
"""Characters of a list, and line breaks of a law, from which on parts have own lines."""


def script_of_spec(text: str, model: Path, title: str) -> str:
    """Return a script with the controller of a file: law, motion, validation, export.

    Args:
        text: of the TOML file.
        model: MJCF or URDF file.
        title: first line of its docstring.

    Raises:
        ProblemError: the file has what a script cannot hold; the message names it.
        MbcasadiError: the file or the model is wrong, as for `build_experiment`.
    """
    tables = tomllib.loads(text)
    _require_known("", tables, KNOWN.get(tables["type"], ()))
    _require_known("limits", tables.get("limits", {}), {*LIMITS, "soft"})
    _require_known("validation", tables["validation"], CONDITIONS)
    script = _Script(tables, model)
    written = filled_template("script.py.j2", {"title": _docstring(title)} | script.values())
    return re.sub(r"\n{4,}", "\n\n\n", written)


def _require_known(where: str, table: Tables, known: Collection[str]) -> None:
    """Raise for keys of which a script would have nothing."""
    for key in table:
        if key not in known:
            place = f"{where}.{key}" if where else key
            raise ProblemError(
                f"no script can be written of a file with '{place}'; write the TOML, and run it "
                "with mbcasadi validate"
            )


class _Script:
    """The lines of a script."""

    def __init__(self, tables: Tables, model: Path) -> None:
        self.tables, self.model = tables, model
        spec: Any = parse_spec(tables)
        source = spec.model(model)
        self.system = read_mjcf(source)
        q, plant = spec.start.configuration(self.system), Plant(source)
        plant.reset(q)
        self.spec, self.q0, self.closes = spec, plant.q, not np.array_equal(plant.q, q)
        self.walks = tables["type"] == "whole_body_mpc"
        self.imports = set[str]()
        self.lists: list[str] = []
        self.known: dict[str, list[object]] = {}

    def values(self) -> dict[str, object]:
        """Return what the template needs."""
        ground, start = self.ground(), self.start()
        touches = self.tables.get("contact", [])
        contacts = contact_lines(touches, self.system, self.q0, self.listed)
        law = [*(self.walking() if self.walks else self.law())]
        motion = [*self.motion()]
        run = [*self.run(moves=bool(motion))]
        if self.closes:
            self.imports.add("plant")
        replaces = any("replace(" in line for line in contacts)
        return {
            "model": literal(str(self.model)),
            "ground": ground,
            "start": start,
            "closes": self.closes,
            "setup": [*self.lists, *contacts, *law],
            "motion": motion,
            "walks": self.walks,
            "run": run,
            "replaces": replaces,
            "arrays": any("np." in line for line in (*motion, *start)),
            "imports": sorted(self.imports),
        }

    def used(self, home: str, name: str) -> str:
        """Return a name of a package that the script imports."""
        self.imports.add(home)
        return f"{home}.{name}"

    def listed(self, name: str, values: Sequence[object], shortest: int = LONG) -> str:
        """Return values, or the name of a list of them where they are long."""
        for taken, known in self.known.items():
            if known == [*values]:
                return taken
        if len(literal(values)) < shortest:
            return literal(values)
        name += str(len(self.known) + 1) if name in self.known else ""
        self.known[name] = [*values]
        self.lists.append(filled_list(name, values))
        return name

    def start(self) -> list[str]:
        """Return the lines of q0."""
        start = self.tables.get("start", {})
        if "q" in start:
            return [filled_list("q0", start["q"])]
        place = f"keyframes[{literal(start['keyframe'])}]" if "keyframe" in start else "q0"
        return [f"q0 = np.array(system.tree.{place})"]

    def ground(self) -> str | None:
        """Return the line of a floor for a model that has none."""
        if "ground" not in self.tables:
            return None
        floor = Call(f"{self.used('plant', 'Ground')}(", arguments_of(self.tables["ground"]))
        return Call("MODEL = plant.with_ground(", ["MODEL", floor]).text()

    def law(self) -> Iterator[str]:
        """Yield the lines of tasks, parts and of the law."""
        tables = self.tables
        tasks = [self.made(TASKS[each["type"]], each) for each in tables["task"]]
        yield Call("tasks = [", tasks, "]").text()
        parts = {f"{key}_limits": self.made(LIMITS[key], own) for key, own in self.limits.items()}
        parts |= {key: self.made(_class_of(key), tables[key]) for key in sorted(self.of_tables)}
        yield from (f"{key} = {call}" for key, call in parts.items() if call.items)
        arguments: list[Call | str] = ["system", "tasks"]
        arguments += ["contacts=contacts"] if "contact" in tables else []
        more = [self.made(PARTS[each["type"]], each) for each in tables.get("part", [])]
        last: list[Call | str] = [Call("parts=[", more, "]")] if more else []
        soft = [self.made(control.SoftLimit, each) for each in self.soft]
        last += [Call("soft=[", soft, "]")] if soft else []
        named = {"period": tables["period"], "name": tables["name"]}
        last += arguments_of(named | tables.get("options", {}))
        own_parts = {key: key if call.items else str(call) for key, call in parts.items()}
        law = f"law = {self.used('control', 'InverseDynamicsQP')}("
        own = [f"{key}={value}" for key, value in own_parts.items()]
        call = Call(law, [*arguments, *own, *last])
        if call.text().count("\n") > MOST_LINES:
            plain = {key: value for key, value in own_parts.items() if key != value}
            entries = [f"{literal(key)}: {value}" for key, value in plain.items()]
            yield Call("parts = {", entries, "}").text()
            own = [f"{key}={key}" for key in own_parts if key not in plain]
            call = Call(law, [*arguments, *own, "**parts", *last])
        yield call.text()

    @property
    def limits(self) -> Tables:
        """The limits of the file, by what they limit."""
        limits: Tables = self.tables.get("limits", {})
        return {key: own for key, own in limits.items() if key != "soft"}

    @property
    def soft(self) -> Sequence[Tables]:
        """Those that may be violated at a price."""
        soft: Sequence[Tables] = self.tables.get("limits", {}).get("soft", [])
        return soft

    @property
    def of_tables(self) -> set[str]:
        """The parts of the law that have a table of their own."""
        return self.tables.keys() & OF_A_TABLE

    def made(self, kind: type, table: Tables) -> Call:
        """Return the call that makes what a table holds."""
        arguments = arguments_of(_needed(kind, table))
        if "joints" in table:
            arguments.insert(0, f"joints={self.joints(table['joints'])}")
        return Call(f"{self.used('control', kind.__name__)}(", arguments)

    def joints(self, names: Sequence[str]) -> str:
        """Return the joints of a task: all that are driven, all others of them, or their names."""
        driven = self.system.joint_roles.driven
        if driven == (*names,):
            return "system.joint_roles.driven"
        rest = [name for name in driven if name not in names]
        if rest in [task.get("joints") for task in self.tables["task"]] and len(rest) < len(names):
            self.listed("rest", rest, shortest=0)
            self.lists.append(
                "joints = [name for name in system.joint_roles.driven if name not in rest]"
            )
            return "joints"
        return self.listed("joints", names)

    def walking(self) -> Iterator[str]:
        """Yield the lines of a plan and what follows it."""
        tables = self.tables
        yield Call(f"gait = {self.used('mpc', 'Gait')}(", arguments_of(tables["gait"])).text()
        horizon, period, name = (literal(tables[key]) for key in ("horizon", "period", "name"))
        arguments = ["system", horizon, period, "contacts", "gait=gait", "q0=q0", f"name={name}"]
        yield Call("whole = mpc.whole_body_mpc(", arguments).text()

    def motion(self) -> Iterator[str]:
        """Yield the lines of the command of a plan, or of the reference of a law."""
        if self.walks:
            return command_lines(self.tables["command"])
        return reference_lines(self.spec.task, self.tables["task"], self.system)

    def run(self, *, moves: bool) -> Iterator[str]:
        """Yield the lines that validate and export."""
        trial = dict(self.tables["validation"])
        criteria = {key: trial.pop(key) for key in ("criteria", "settle") if key in trial}
        timestep, pushes = trial.pop("timestep", None), trial.pop("push", [])
        arguments: list[Call | str] = ["whole.law" if self.walks else "law", "MODEL"]
        arguments.append(literal(trial.pop("duration")))
        arguments += ["q0=q0", *arguments_of(trial)]
        scenario = ["outer=above"] if self.walks else []
        scenario += [] if timestep is None else [f"timestep={literal(timestep)}"]
        if moves and not self.walks:
            arguments.append("reference=reference")
        if scenario:
            name = self.used("validation", "ScenarioOptions")
            arguments.append(f"scenario={name}({', '.join(scenario)})")
        if criteria:
            own: list[Call | str] = []
            if "criteria" in criteria:
                yield Call("limits = {", entries_of(criteria["criteria"]), "}").text(4)
                own = ["limits"]
            own += [f"settle={literal(criteria['settle'])}"] if "settle" in criteria else []
            made = self.used("validation", "Criteria")
            yield f"criteria = {made}({', '.join(map(str, own))})"
            arguments.append("criteria=criteria")
        if pushes:
            push = self.used("validation", "Push")
            arguments.append(
                Call(
                    "disturbance=[", [Call(f"{push}(", arguments_of(each)) for each in pushes], "]"
                )
            )
        call, folder = Call("report = mb.validate(", arguments), f"{self.tables['name']}_c"
        if self.walks:
            above = self.used("validation", "outer_law")
            yield f"with {above}(whole.plan, whole, command) as above:"
            yield f"    {call.text(8)}"
            export = "mb.export_two_rates(whole"
        else:
            yield call.text(4)
            export = "mb.export_c(law"
        yield "print(report)"
        yield f"{export}, {literal(folder)}, overwrite=True)"


def _needed(kind: type, table: Tables) -> dict[str, Any]:
    """Return what a table says of a dataclass but its lists of joints and its defaults."""
    defaults = {each.name: each.default for each in fields(kind)}
    apart = "type", "reference", "joints"
    return {k: v for k, v in table.items() if k not in apart and v != defaults.get(k)}


def _docstring(text: str) -> str:
    """Return a line that can stand between triple quotes, without a full stop."""
    return text.replace("\\", "/").replace('"', "'").rstrip(".")


def _class_of(key: str) -> type:
    """Return the dataclass of an argument of the law."""
    hint = hints_of(InverseDynamicsQP.__init__)[key]
    return next(each for each in parts_of(hint) if is_dataclass(each) and isinstance(each, type))
