"""Recordings as MCAP, for Foxglove and PlotJuggler.

Messages are those of ROS 2 (`cdr`, with their definitions in the file): of the encodings of MCAP
both programs read it without a schema of ours, they know poses, wrenches and joint states in it,
and `ros2 bag` and `estimation.read_log` read it too. Programs differ on JSON, and Protobuf would
need a package more.

- `/joint_states`: position, velocity and effort of joints with one coordinate;
- `/tf`: free joints and contacts, in the frame `world`;
- `/contact/<name>`: the force on a contact, N, in the frame of the same name;
- `/recording/<field>`: all numbers of a field, with names and units.

A contact on another moving body is placed as the recording has it, in the axes of that body.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mbcasadi.extras import optional_module
from mbcasadi.validation.closed_loop.columns import FREE_Q
from mbcasadi.validation.closed_loop.recording_parts import RecordingPart, parts_of
from mbcasadi.validation.closed_loop.whole_file import write_whole

WORLD = "world"
FORCE = "contact_force"

COMMON = """
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
VECTOR = """
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
DEFINITIONS = {
    "sensor_msgs/msg/JointState": f"""std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort{COMMON}""",
    "tf2_msgs/msg/TFMessage": f"""geometry_msgs/TransformStamped[] transforms
================================================================================
MSG: geometry_msgs/TransformStamped
std_msgs/Header header
string child_frame_id
geometry_msgs/Transform transform
================================================================================
MSG: geometry_msgs/Transform
geometry_msgs/Vector3 translation
geometry_msgs/Quaternion rotation
================================================================================
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w{VECTOR}{COMMON}""",
    "geometry_msgs/msg/WrenchStamped": f"""std_msgs/Header header
geometry_msgs/Wrench wrench
================================================================================
MSG: geometry_msgs/Wrench
geometry_msgs/Vector3 force
geometry_msgs/Vector3 torque{VECTOR}{COMMON}""",
    "mbcasadi_msgs/msg/Values": f"""std_msgs/Header header
string[] name
string[] unit
float64[] value{COMMON}""",
}
"""Definitions of the messages, by the names that ROS 2 gives them."""

Message = tuple[str, str, dict[str, Any]]
"""Topic, kind and content."""


def write_mcap(recording: Any, path: str | Path) -> Path:
    """Write a recording as MCAP; see `Recording.to_mcap`."""
    library = optional_module("mcap_ros2.writer", "mcap", "writing MCAP")
    parts = parts_of(recording)

    def write(fresh: Path) -> None:
        with fresh.open("wb") as file:
            writer: Any = library.Writer(file)
            schemas = {kind: writer.register_msgdef(kind, x) for kind, x in DEFINITIONS.items()}
            for tick, t in enumerate(recording.t.tolist()):
                stamp = round(t * 1e9)
                for topic, kind, content in _messages(recording, parts, tick):
                    writer.write_message(topic, schemas[kind], content, stamp, stamp, tick)
            writer.finish()

    return write_whole(Path(path), write)


def _messages(recording: Any, parts: Mapping[str, RecordingPart], tick: int) -> Iterator[Message]:
    """Yield the messages of a tick."""
    header = _header(float(recording.t[tick]), WORLD)
    yield "/joint_states", "sensor_msgs/msg/JointState", header | _joints(parts, tick)
    transforms = [_transform(header, name, pose) for name, pose in _poses(recording, parts, tick)]
    if transforms:
        yield "/tf", "tf2_msgs/msg/TFMessage", {"transforms": transforms}
    for name, force in zip(recording.contact_names, recording.contact_force[tick], strict=True):
        wrench = {"force": _vector(force), "torque": _vector(np.zeros(3))}
        own = _header(float(recording.t[tick]), f"contact/{name}")
        yield f"/contact/{name}", "geometry_msgs/msg/WrenchStamped", own | {"wrench": wrench}
    for field, (values, columns) in parts.items():
        if values.shape[1] and field != "t":
            content = {
                "name": [name or field for name in columns.names],
                "unit": list(columns.units),
                "value": values[tick].astype(float).tolist(),
            }
            yield f"/recording/{field}", "mbcasadi_msgs/msg/Values", header | content


def _joints(parts: Mapping[str, RecordingPart], tick: int) -> dict[str, Any]:
    """Return the state of the joints that have one coordinate and one rate."""
    q, v = parts["q"], parts["v"]
    turning = {name.removesuffix(".qw") for name in q.columns.names if name.endswith(".qw")}
    names = [n for n in q.columns.names if n.rpartition(".")[0] not in turning]
    sources = {"position": q, "velocity": v, "effort": parts["actuator_force"]}
    state: dict[str, Any] = {"name": names}
    for key, (values, columns) in sources.items():
        state[key] = [float(values[tick, columns.names.index(name)]) for name in names]
    return state


def _poses(
    recording: Any, parts: Mapping[str, RecordingPart], tick: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield name and pose (7,) of free joints, and of contacts in the axes of the world."""
    values, columns = parts["q"]
    for name in columns.names:
        joint = name.removesuffix(f".{FREE_Q[0]}")
        entries = [f"{joint}.{each}" for each in FREE_Q]
        if joint != name and set(entries) <= set(columns.names):
            yield joint, [float(values[tick, columns.names.index(each)]) for each in entries]
    for name, place in zip(recording.contact_names, recording.contact_position[tick], strict=True):
        yield f"contact/{name}", [*place.tolist(), 1.0, 0.0, 0.0, 0.0]


def _transform(header: dict[str, Any], name: str, pose: list[float]) -> dict[str, Any]:
    x, y, z, qw, qx, qy, qz = pose
    transform = {
        "translation": {"x": x, "y": y, "z": z},
        "rotation": {"x": qx, "y": qy, "z": qz, "w": qw},
    }
    return {**header, "child_frame_id": name, "transform": transform}


def _header(t: float, frame: str) -> dict[str, Any]:
    seconds, rest = divmod(round(t * 1e9), 10**9)
    return {"header": {"stamp": {"sec": seconds, "nanosec": rest}, "frame_id": frame}}


def _vector(values: Any) -> dict[str, float]:
    return dict(zip("xyz", map(float, values), strict=True))
