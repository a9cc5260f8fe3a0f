"""Logs of robots: channels of numbers, each with its own times, read from CSV, npz and MCAP."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mbcasadi.argument_kinds import checked, require_fields
from mbcasadi.errors import MissingExtraError, ProblemError, ShapeError, UnknownNameError
from mbcasadi.readable_signatures import readable_fields
from mbcasadi.shapes import real_array, require_name, require_positive
from mbcasadi.short_text import summarised

Array = NDArray[np.float64]

MCAP_MISSING = "MCAP needs mcap and mcap-ros2-support: pip install 'mbcasadi[mcap]'"


@readable_fields
@summarised
@dataclass(frozen=True)
class SensorLog:
    """What a robot recorded.

    Attributes:
        channels: name → times (n,), s, that do not fall, and values (n,); NaN for no sample.

    Raises:
        ShapeError: times and values of different lengths, or times that are not finite.
        ProblemError: no channels, or times that fall.
    """

    channels: Mapping[str, tuple[Array, Array]]

    def __post_init__(self) -> None:
        require_fields(self)
        if not self.channels:
            raise ProblemError("the log has no channels; expected name → (times, values)")
        whole = {name: _samples(name, pair) for name, pair in self.channels.items()}
        object.__setattr__(self, "channels", whole)

    def _summary(self) -> dict[str, object]:
        return {"channels": list(self.channels)}

    @checked
    def samples(self, name: str) -> tuple[Array, Array]:
        """Return times and values of a channel: of this name, or the only one that ends with it.

        Raises:
            UnknownNameError: no such channel, or several; the message lists them.
        """
        if name not in self.channels:
            ending = [known for known in self.channels if known.endswith((f".{name}", f"/{name}"))]
            if len(ending) > 1:
                several = ", ".join(f"'{known}'" for known in ending)
                raise UnknownNameError(f"channel '{name}' is one of {several}; expected its name")
            if not ending:
                require_name("channel", name, list(self.channels))
            name = ending[0]
        return self.channels[name]


def _samples(name: str, pair: object) -> tuple[Array, Array]:
    """Return times and values of a channel."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ProblemError(f"channel '{name}' is {type(pair).__name__}; expected (times, values)")
    t, x = real_array(f"times of '{name}'", pair[0]), real_array(f"values of '{name}'", pair[1])
    if t.ndim != 1 or t.shape != x.shape:
        raise ShapeError(f"channel '{name}' has times {t.shape}, values {x.shape}; expected (n,)")
    if not np.all(np.isfinite(t)):
        raise ShapeError(f"times of channel '{name}' hold NaN or infinity; expected finite numbers")
    if np.any(np.diff(t) < 0):
        raise ProblemError(f"times of channel '{name}' fall; expected them in their order")
    return t, x


@checked
def read_log(path: str | Path, *, time: str = "t", unit: float = 1.0) -> SensorLog:
    """Read a log of a robot, by the suffix of its file.

    - `.csv`: a heading, then rows; a column is a channel, named without its unit in brackets. An
      empty entry is no sample; a column of texts is left out.
    - `.npz`: an array (n,) is a channel, and each column of one (n, k); they are named by the text
      `columns`, as in recordings of `validate`, or by their number. Arrays of other lengths are
      left out.
    - `.mcap`: messages in JSON or of ROS 2. Each number is a channel `topic.field.part`; where a
      message has `name`, as a JointState, entries of its lists of that length have these names.
      Times are the stamps of the messages' headers, else when they were logged.

    Args:
        path: of the file.
        time: name of the column or array of times; MCAP has its own.
        unit: of the times, s: 1e-9 for nanoseconds.

    Raises:
        ProblemError: no such file, another suffix, or a file that is no log.
        UnknownNameError: no column of times.
        MissingExtraError: MCAP needs the extra `mcap`.
    """
    path = Path(path)
    require_positive(unit=unit)
    readers: dict[str, Callable[[Path, str, float], SensorLog]]
    readers = {".csv": _read_csv, ".npz": _read_npz, ".mcap": _read_mcap}
    if path.suffix not in readers:
        raise ProblemError(f"{path}: expected a log that ends with {', '.join(readers)}")
    if not path.is_file():
        raise ProblemError(f"there is no file {path}")
    try:
        return readers[path.suffix](path, time, unit)
    except (ValueError, OSError, EOFError, BadZipFile, csv.Error) as error:
        if isinstance(error, ProblemError | ShapeError):
            raise
        raise ProblemError(f"{path} is no log ({error}); expected what its suffix says") from error


def _read_csv(path: Path, time: str, unit: float) -> SensorLog:
    with path.open(newline="", encoding="utf-8") as file:
        heading = next(csv.reader(file), [])
        names = [name.partition(" [")[0].strip() for name in heading]
        require_name("column of times", time, names)
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise ProblemError(f"{path} has several columns '{twice[0]}'; expected each name once")
        rows = [row for row in csv.reader(file) if row]
    for k, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise ProblemError(f"{path}: row {k} has {len(row)} entries, the heading {len(names)}")
    columns = {name: _column(name, [row[k] for row in rows]) for k, name in enumerate(names)}
    t = np.asarray(columns.pop(time)) * unit
    return SensorLog({name: (t, x) for name, x in columns.items() if x is not None})


def _column(name: str, entries: Sequence[str]) -> Array | None:
    """Return the numbers of a column, NaN for none; None for a column of texts.

    Raises:
        ProblemError: numbers and texts.
    """
    numbers, texts = np.full(len(entries), np.nan), list[int]()
    for k, entry in enumerate(entries):
        try:
            numbers[k] = float(entry or "nan")
        except ValueError:
            texts.append(k)
    if len(texts) == sum(bool(entry) for entry in entries) > 0:
        return None
    if texts:
        raise ProblemError(
            f"column '{name}' has '{entries[texts[0]]}' in row {texts[0] + 2}; expected a number "
            "or nothing"
        )
    return numbers


def _read_npz(path: Path, time: str, unit: float) -> SensorLog:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    require_name("array of times", time, list(arrays))
    named = json.loads(str(arrays["columns"])) if "columns" in arrays else {}
    t = real_array(time, arrays.pop(time)).ravel() * unit
    channels = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or len(array) != t.size:
            continue
        values = array.astype(float)
        if array.ndim == 1:
            channels[name] = (t, values)
            continue
        columns = named.get(name, {}).get("names") or range(values.shape[1])
        channels |= {f"{name}.{c}": (t, x) for c, x in zip(columns, values.T, strict=False)}
    return SensorLog(channels)


def _read_mcap(path: Path, _: str, __: float) -> SensorLog:
    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
        from mcap_ros2.decoder import DecoderFactory
    except ImportError as error:
        raise MissingExtraError(f"reading {MCAP_MISSING}") from error
    factory = DecoderFactory()
    collected: dict[str, list[tuple[float, float]]] = {}
    try:
        with path.open("rb") as file:
            for schema, channel, message in make_reader(file).iter_messages():
                decode = _decoder(factory, channel.message_encoding, schema)
                content = decode(message.data)
                t = _stamp(content) or message.log_time * 1e-9
                for name, value in _numbers(content, channel.topic):
                    collected.setdefault(name, []).append((t, value))
    except McapError as error:
        raise ProblemError(f"{path} is no log ({error}); expected what its suffix says") from error
    pairs = {name: np.array(sorted(rows, key=itemgetter(0))) for name, rows in collected.items()}
    return SensorLog({name: (rows[:, 0], rows[:, 1]) for name, rows in pairs.items()})


def _decoder(factory: Any, encoding: str, schema: Any) -> Callable[[bytes], Any]:
    """Return what decodes messages of a schema, the factory being that of ROS 2."""
    decode = json.loads if encoding == "json" else factory.decoder_for(encoding, schema)
    if decode is None:
        raise ProblemError(f"messages in '{encoding}'; expected JSON or ROS 2 (cdr)")
    return cast(Callable[[bytes], Any], decode)


def _field(content: Any, name: str) -> Any:
    return content.get(name) if isinstance(content, dict) else getattr(content, name, None)


def _stamp(content: Any) -> float | None:
    """Return the time in a message's header, s; None without one."""
    stamp = _field(_field(content, "header"), "stamp")
    seconds, rest = _field(stamp, "sec"), _field(stamp, "nanosec")
    return None if seconds is None or rest is None else float(seconds) + 1e-9 * float(rest)


def _numbers(content: Any, name: str) -> Iterator[tuple[str, float]]:
    """Yield each number of a message with its name."""
    if isinstance(content, bool | int | float | np.number):
        yield name, float(content)
    elif isinstance(content, list | tuple | np.ndarray):
        for k, part in enumerate(content):
            yield from _numbers(part, f"{name}.{k}")
    elif not isinstance(content, str | bytes | None):
        parts = content if isinstance(content, dict) else _slots(content)
        labels = parts.get("name")
        for key, part in parts.items():
            if key == "header":
                continue
            if isinstance(labels, list) and _length(part) == len(labels) and key != "name":
                part = dict(zip(map(str, labels), part, strict=True))
            yield from _numbers(part, f"{name}.{key}")


def _slots(content: Any) -> dict[str, Any]:
    """Return the fields of a decoded ROS message."""
    names = getattr(type(content), "__slots__", None) or vars(content)
    return {key: getattr(content, key) for key in names if not key.startswith("_")}


def _length(part: Any) -> int:
    return len(part) if isinstance(part, list | tuple | np.ndarray) else -1
