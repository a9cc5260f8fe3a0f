"""What the input `y` of a law is read from: in header and README, and by the plugin of MuJoCo."""

from collections.abc import Sequence
from typing import NamedTuple, TypedDict
from xml.sax.saxutils import quoteattr

from mbcasadi.codegen.c_interface import CLaw, comment, law_template
from mbcasadi.codegen.text import c_string, plain_line
from mbcasadi.description.controller import PlantSensor

Y = "y"

MEANS = ("gyro", "accelerometer")
"""Kinds that are means over a period."""

KINDS = {
    "gyro": "mjSENS_GYRO",
    "accelerometer": "mjSENS_ACCELEROMETER",
    "position": "mjSENS_JOINTPOS",
    "rate": "mjSENS_JOINTVEL",
}
"""MuJoCo's sensors of the kinds that are found by what they measure; others are by name."""

ELEMENTS = {"position": "jointpos", "rate": "jointvel"}

READINGS = {
    "gyro": "rad/s in the axes of {}, mean since the last tick",
    "accelerometer": "m/s² in the axes of {}, mean since the last tick; at rest +g upwards",
    "position": "encoder of joint {}",
    "rate": "rate of joint {}",
}


class SensorEntry(TypedDict):
    """One sensor in the manifest."""

    name: str
    kind: str
    target: str
    rows: list[int]


class Reading(NamedTuple):
    """Rows of y that follow each other, and what they are: `text` for pages."""

    rows: tuple[int, ...]
    text: str

    @property
    def place(self) -> str:
        """The rows as text."""
        first, last = self.rows[0], self.rows[-1]
        return str(first) if first == last else f"{first} to {last}"


def sensor_entries(law: CLaw) -> list[SensorEntry]:
    """Return the manifest's entries."""
    return [
        {"name": s.name, "kind": s.kind, "target": s.target, "rows": list(s.rows)}
        for s in law.sensors
    ]


def readings(sensors: Sequence[PlantSensor]) -> list[Reading]:
    """Return what the rows of y are; neighbours of one kind with one row each together."""
    groups: list[list[PlantSensor]] = []
    for sensor in sensors:
        last = groups[-1][-1] if groups else None
        joins = last is not None and last.kind == sensor.kind and len(sensor.rows) == 1
        if joins and last is not None and last.rows == (sensor.rows[0] - 1,):
            groups[-1].append(sensor)
        else:
            groups.append([sensor])
    return [_reading(group) for group in groups]


def _reading(group: Sequence[PlantSensor]) -> Reading:
    rows = tuple(row for sensor in group for row in sensor.rows)
    names = [sensor.target or sensor.name for sensor in group]
    several = names if len(names) < 3 else [names[0], "…", names[-1]]
    text = READINGS.get(group[0].kind, f"{group[0].kind} {{}}").format(", ".join(several))
    return Reading(rows, text if len(group) == 1 else text.replace("joint ", "joints "))


def sensor_header(law: CLaw) -> str:
    """Return the comment on y, behind the arguments."""
    if not law.sensors:
        return ""
    lines = [f" *   y[{each.place}]: {comment(each.text)}" for each in readings(law.sensors)]
    return (
        "\n *\n * Rows of y. A sample that is NaN, or whose `valid` is 0, was not measured.\n"
        + ("\n".join(lines))
    )


def sensor_page(law: CLaw) -> str:
    """Return the section on y and the estimate of the README."""
    if not law.sensors:
        return ""
    rows = [f"| {each.place} | {plain_line(each.text)} |" for each in readings(law.sensors)]
    notes = dict(law.notes)
    estimate = [f"\n{word.capitalize()}: {notes[word]}.\n" for word in NOTED if word in notes]
    return law_template(
        law, "readme_sensors.md.in", {"rows": "\n".join(rows), "estimate": "".join(estimate)}
    )


NOTED = ("status of the estimate", "not observed", "without measurements")
"""Notes of a controller with an estimator that the README shows."""


def sensor_tables(law: CLaw) -> str:
    """Return the plugin's table of the sensors."""
    rows = [
        f"  {{{c_string(s.kind)}, {c_string(s.target)}, {KINDS.get(s.kind, '-1')}, "
        f"{int(s.frame_kind == 'body')}, {int(s.kind in MEANS)}, {s.rows[0]}, {len(s.rows)}}},\n"
        for s in law.sensors
    ]
    return "".join(rows)


def sensor_elements(law: CLaw) -> str:
    """Return the `<sensor>` section of the plugin's declaration."""
    lines = []
    for s in law.sensors:
        element = ELEMENTS.get(s.kind, s.kind)
        if s.kind not in KINDS or s.frame_kind == "body":
            continue
        target = "joint" if s.kind in ELEMENTS else "site"
        name = quoteattr(f"{law.name}.{element}.{s.target}")
        lines.append(f"    <{element} name={name} {target}={quoteattr(s.target)}/>\n")
    return f"  <sensor>\n{''.join(lines)}  </sensor>\n" if lines else ""
