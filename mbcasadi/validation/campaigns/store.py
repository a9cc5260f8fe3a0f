"""The outcomes of a campaign in one SQLite file, written while it runs.

Only the process that called `campaign` writes, one transaction for each batch: whatever ends it,
the file holds complete outcomes. Tables: `campaign` (fingerprint), `notes`, `cases`, `outcomes`,
`metrics` with `metric_names`, `verdicts`; the view `results` has one row for each case and metric.
NaN is NULL.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from mbcasadi.errors import ProblemError
from mbcasadi.validation.campaigns.case import Case, case_of_json
from mbcasadi.validation.campaigns.outcome import Outcome
from mbcasadi.validation.metrics import Metric, Verdict

VERSION = "2"
SETTING = "setting: "
"""Begin of the names of parts that tell no campaign from another."""

SCHEMA = """
CREATE TABLE campaign (part TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE notes (place INTEGER PRIMARY KEY, note TEXT NOT NULL);
CREATE TABLE cases (number INTEGER PRIMARY KEY, seed INTEGER, delay INTEGER, content TEXT NOT NULL);
CREATE TABLE outcomes (number INTEGER PRIMARY KEY, passed INTEGER, events TEXT NOT NULL);
CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT, unit TEXT, meaning TEXT,
    UNIQUE (name, unit, meaning));
CREATE TABLE metrics (number INTEGER, place INTEGER, name_id INTEGER, value REAL,
    PRIMARY KEY (number, place)) WITHOUT ROWID;
CREATE TABLE verdicts (number INTEGER, place INTEGER, metric TEXT, bound REAL, at_least INTEGER,
    value REAL, passed INTEGER, PRIMARY KEY (number, place)) WITHOUT ROWID;
CREATE VIEW results AS SELECT number, passed, name, value, unit FROM outcomes
    JOIN metrics USING (number) JOIN metric_names ON name_id = metric_names.id;
"""


class Store:
    """An open file of a campaign."""

    def __init__(self, path: Path) -> None:
        """Open a file, or make a new one.

        Raises:
            ProblemError: it cannot be opened, or is no file of a campaign.
        """
        self.path = path
        is_new = not path.exists()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None)
            tables = self._made()
        except sqlite3.Error as error:
            if hasattr(self, "_connection"):
                self.close()
            if is_new:
                path.unlink(missing_ok=True)
            raise ProblemError(
                f"cannot open {path}: {error}; expected the file of a campaign, or a new one in a "
                "folder that can be written"
            ) from error
        if "outcomes" not in tables:
            self.close()
            raise ProblemError(f"{path} is a database, but not of a campaign; give another name")

    def _made(self) -> set[object]:
        """Return the names of the tables, which are made where there is none."""
        query = "SELECT name FROM sqlite_master"
        if not self._rows(query):
            with self._connection as connection:  # of two processes the second one finds them made
                connection.execute("BEGIN IMMEDIATE")
                if not self._rows(query):
                    for statement in filter(str.strip, SCHEMA.split(";")):
                        connection.execute(statement)
        return {row[0] for row in self._rows(query)}

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Write in one transaction, or nothing.

        Raises:
            ProblemError: another process has written the same, or the file cannot be written.
        """
        try:
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
        except sqlite3.IntegrityError as error:
            raise ProblemError(
                f"{self.path} has outcomes or cases of another process by now ({error}); one "
                "process at a time writes a campaign: wait for it, or give another file"
            ) from error
        except sqlite3.Error as error:
            raise ProblemError(
                f"cannot write {self.path}: {error}; what it holds stays, and the same call goes "
                "on with it when there is place"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        return self._connection.execute(query).fetchall()

    def _read_rows(self, query: str) -> list[tuple[object, ...]]:
        """Return rows; ProblemError where the file is damaged."""
        try:
            return self._rows(query)
        except sqlite3.Error as error:
            raise ProblemError(
                f"cannot read {self.path}: {error}; give an undamaged file"
            ) from error

    def begin(
        self,
        fingerprint: Mapping[str, str],
        cases: Sequence[Case],
        notes: Sequence[str],
        settings: Mapping[str, str],
    ) -> None:
        """Write what the campaign is; check it where the file is of an earlier run.

        Raises:
            ProblemError: the file holds another campaign; the message says what differs.
        """
        parts = {"version": VERSION, **fingerprint}
        known = {n: value for n, value in self._parts().items() if not n.startswith(SETTING)}
        if known:
            _require_same(self.path, known, parts)
            return
        parts |= {f"{SETTING}{name}": value for name, value in settings.items()}
        rows = [(n, case.seed, case.delay, case.to_json()) for n, case in enumerate(cases)]
        with self._writing() as connection:
            connection.executemany("INSERT INTO campaign VALUES (?, ?)", parts.items())
            connection.executemany("INSERT INTO notes VALUES (?, ?)", enumerate(notes))
            connection.executemany("INSERT INTO cases VALUES (?, ?, ?, ?)", rows)

    def _parts(self) -> dict[str, str]:
        return {str(part): str(value) for part, value in self._read_rows("SELECT * FROM campaign")}

    def settings(self) -> dict[str, str]:
        """Return model, controller, duration and date of the campaign as it began."""
        parts = self._parts().items()
        return {n.removeprefix(SETTING): value for n, value in parts if n.startswith(SETTING)}

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Write the outcomes of a batch in one transaction."""
        with self._writing() as connection:
            for outcome in outcomes:
                row = (outcome.number, outcome.passed, json.dumps(outcome.events))
                connection.execute("INSERT INTO outcomes VALUES (?, ?, ?)", row)
                connection.executemany(
                    "INSERT OR IGNORE INTO metric_names (name, unit, meaning) VALUES (?, ?, ?)",
                    [(m.name, m.unit, m.note) for m in outcome.metrics],
                )
                connection.executemany(
                    "INSERT INTO metrics SELECT ?, ?, id, ? FROM metric_names "
                    "WHERE name = ? AND unit = ? AND meaning = ?",
                    [
                        (outcome.number, place, _stored(m.value), m.name, m.unit, m.note)
                        for place, m in enumerate(outcome.metrics)
                    ],
                )
                connection.executemany(
                    "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            outcome.number,
                            k,
                            v.metric,
                            v.limit,
                            v.at_least,
                            _stored(v.value),
                            v.passed,
                        )
                        for k, v in enumerate(outcome.verdicts)
                    ],
                )

    def _events(self, text: str) -> tuple[str, ...]:
        try:
            return tuple(json.loads(text))
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{self.path} holds events that are none: {text!r:.60}") from error

    def notes(self) -> list[str]:
        """Return the notes of the campaign, in their order."""
        return [str(note) for (note,) in self._read_rows("SELECT note FROM notes ORDER BY place")]

    def cases(self) -> list[Case]:
        """Return all cases of the campaign, in their order."""
        query = "SELECT content FROM cases ORDER BY number"
        return [case_of_json(str(text), str(self.path)) for (text,) in self._read_rows(query)]

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes that are done, in the order of their cases."""
        metrics: dict[object, list[Metric]] = {}
        query = (
            "SELECT number, name, value, unit, meaning FROM metrics "
            "JOIN metric_names ON name_id = id ORDER BY number, place"
        )
        for number, name, value, unit, meaning in self._read_rows(query):
            metric = Metric(str(name), _read(value), str(unit), str(meaning))
            metrics.setdefault(number, []).append(metric)
        verdicts: dict[object, list[Verdict]] = {}
        for number, _, name, bound, at_least, value, passed in self._read_rows(
            "SELECT * FROM verdicts ORDER BY number, place"
        ):
            verdict = Verdict(
                str(name), _read(bound), bool(at_least), _read(value), _answer(passed)
            )
            verdicts.setdefault(number, []).append(verdict)
        query = (
            "SELECT number, content, events FROM outcomes JOIN cases USING (number) ORDER BY number"
        )
        return [
            Outcome(
                cast(int, number),
                case_of_json(str(content), str(self.path)),
                tuple(metrics.get(number, ())),
                tuple(verdicts.get(number, ())),
                self._events(str(events)),
            )
            for number, content, events in self._read_rows(query)
        ]


def _require_same(path: Path, known: Mapping[str, str], parts: Mapping[str, str]) -> None:
    """Raise where a file holds another campaign."""
    different = [name for name in {**parts, **known} if known.get(name) != parts.get(name)]
    if different:
        texts = [
            f"{name} ({known.get(name, 'none')} there, {parts.get(name, 'none')} here)"
            for name in different
        ]
        raise ProblemError(
            f"{path} holds another campaign: it differs in {', '.join(texts)}; give the same "
            "arguments to go on with it, or another file"
        )


def _answer(passed: object) -> bool | None:
    return None if passed is None else bool(passed)


def _stored(value: float) -> float | None:
    return None if math.isnan(value) else value


def _read(value: object) -> float:
    return math.nan if value is None else cast(float, value)
