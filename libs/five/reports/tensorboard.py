"""TensorBoard event files of a run, written with its report and continued after a resume.

``exported.json`` beside the files holds the position in the run's series and each file's length. What follows that
length, e.g. after a crash or on a full disk, is discarded and written again, so each record is exported once.

A restart event (``SessionLog.START``) makes TensorBoard drop all points from its step on. It begins a new file, which
holds the whole run, and marks a version that continues an older one, as after `five revert`. The games have a folder of
their own, because their step is not the version.

The first day has a point for each record. Later points are at least a `LATER_POINTS`th of the run's age apart, because
each takes some 2.5 kB and a run may go on for months.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from rapid.atomic_file import replace_text
from rapid.store.lineage import Lineage
from rapid.store.series import Series

GROUPS = {"versions": "learning", "ratings": "rating", "games": "games"}  # of tags, by series
COMMIT_RECORDS = 1000  # records from one commit to the next
DENSE_SECONDS = 86_400.0  # of a run, in which each record is a point
LATER_POINTS = 20_000


@dataclass(frozen=True)
class _Position:
    """Position of the export: the last record of each series, numbers of the last version and game, the names and
    lengths of the files by folder, and the times of the first record and of each series' last point."""

    after: dict[str, str] = field(default_factory=lambda: dict.fromkeys(GROUPS, ""))
    version: int = -1
    games: int = 0
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    began: float | None = None
    points: dict[str, float] = field(default_factory=dict)


class TensorBoardWriter:
    """Writer of a run's new records. The step is the version; for games it is the game's number.

    Nothing is kept between updates: after an error the next one continues from the last commit.
    """

    def __init__(self, folder: Path, series: Series, lineage: Callable[[], Lineage]) -> None:
        self._folder = folder
        self._path = folder / "exported.json"
        self._series = series
        self._lineage = lineage

    def update(self) -> None:
        """Write the records that were appended since the last update. Raises OSError, redis.RedisError."""
        position = self._read()
        reverted = self._reverted()
        for kind in GROUPS:
            while True:
                records = self._series.following(kind, position.after[kind], COMMIT_RECORDS)
                if not records:
                    break
                events: list[Event] = []
                version, games = position.version, position.games
                began = records[0].at if position.began is None else position.began
                point = position.points.get(kind, 0.0)
                for record in records:
                    step = int(record.values.get("version") or 0)
                    if kind == "games":
                        step, games = games, games + 1
                    elif kind == "versions":
                        restart = min((first for newer, first in reverted if version < newer <= step), default=step)
                        if restart < step or step <= version:
                            events.append(_restart(restart, record.at))
                        version = step
                    elif any(first <= step < newer <= version for newer, first in reverted):
                        continue  # a late rating of a version that was reverted
                    age = record.at - began
                    if age > DENSE_SECONDS and record.at - point < age / LATER_POINTS:
                        continue
                    point = record.at
                    event = Event(wall_time=record.at, step=step,
                                  summary=Summary(value=list(_values(GROUPS[kind], record.values))))
                    if event.summary.value:
                        events.append(event)
                folder = "games" if kind == "games" else "."
                named = self._append(folder, position.files.get(folder), events)
                position = replace(position, after={**position.after, kind: records[-1].id}, version=version,
                                   games=games, files={**position.files, folder: named}, began=began,
                                   points={**position.points, kind: point})
                replace_text(self._path, json.dumps(asdict(position)))

    def _reverted(self) -> list[tuple[int, int]]:
        """Return, for each revert, the first version after it and the first version that it left behind."""
        oldest: dict[int, int] = {}
        for segment, gone in self._lineage().reverted():
            oldest[segment.first] = min(oldest.get(segment.first, gone.start), gone.start)
        return sorted(oldest.items())

    def _read(self) -> _Position:
        """Return the stored position; the beginning if it or a file is missing."""
        try:
            row = json.loads(self._path.read_text(encoding="utf-8"))
            position = _Position(dict(row["after"]), int(row["version"]), int(row["games"]),
                                 {folder: (str(name), int(size)) for folder, (name, size) in row["files"].items()},
                                 row.get("began"), dict(row.get("points", {})))
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return _Position()
        whole = position.after.keys() == GROUPS.keys() and all(
            (self._folder / folder / name).exists() and (self._folder / folder / name).stat().st_size >= size
            for folder, (name, size) in position.files.items())
        return position if whole else _Position()

    def _append(self, folder: str, named: tuple[str, int] | None, events: list[Event]) -> tuple[str, int]:
        """Write events at the end of a folder's file, or of a new one. Return its name and length."""
        if named is None:
            named = (f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.0", 0)
        name, size = named
        data = BytesIO()
        writer = RecordWriter(data)
        if size == 0:
            began = events[0].wall_time if events else time.time()
            events = [Event(wall_time=began, file_version="brain.Event:2"), _restart(0, began), *events]
        for event in events:
            writer.write(event.SerializeToString())
        path = self._folder / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.truncate(size)
            file.write(data.getvalue())
        return name, size + len(data.getvalue())


def _restart(step: int, at: float) -> Event:
    return Event(wall_time=at, step=step, session_log=SessionLog(status=SessionLog.START))


def _values(group: str, values: dict[str, Any]) -> Iterator[Any]:
    """Yield each number of a record as a scalar with its tag."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _values(f"{group}/{name}", value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield Summary.Value(tag=f"{group}/{name}", simple_value=value)
