"""TensorBoard files, read as TensorBoard reads them, over resumes, reverts and full disks."""

import errno
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import redis
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from five.reports.tensorboard import TensorBoardWriter
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.lineage import Lineage, LineageSegment
from rapid.store.record import RunRecord
from rapid.store.series import Series


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    with EmbeddedRedis(tmp_path / "redis", append_only=False).start() as server:
        yield redis.Redis.from_url(server.url)


@pytest.fixture
def series(client: redis.Redis) -> Series:
    return Series(client, "trial")


def learn(series: Series, *versions: int) -> None:
    series.extend("versions", [{"version": v, "entropy": v / 10, "words": "text", "done": True} for v in versions])


def points(folder: Path, tag: str = "learning/entropy") -> list[int]:
    """Return the steps of a curve as TensorBoard shows it."""
    read = EventAccumulator(str(folder))
    read.Reload()
    return [point.step for point in read.Scalars(tag)]


def lineage(*branches: tuple[int, int]) -> Lineage:
    """Return the lineage with segments (first version, parent)."""
    record = RunRecord(game={}, model={})
    return Lineage(LineageSegment(first, parent, record) for first, parent in ((0, -1), *branches))


def writer(folder: Path, series: Series, *branches: tuple[int, int]) -> TensorBoardWriter:
    return TensorBoardWriter(folder, series, lambda: lineage(*branches))


def test_each_version_is_exported_once_over_resumes(tmp_path: Path, series: Series) -> None:
    folder = tmp_path / "tensorboard"
    for start in range(4):
        learn(series, *range(10 * start + 1, 10 * start + 11))
        series.append("games", {"winner": 1, "statistics": {"last_hits": 3.0}})
        series.append("ratings", {"version": 10 * start + 1, "mu": 2.0})
        writer(folder, series).update()
    writer(folder, series).update()
    assert points(folder) == list(range(1, 41))
    assert points(folder, "rating/mu") == [1, 11, 21, 31]
    assert points(folder / "games", "games/statistics/last_hits") == [0, 1, 2, 3]
    assert len(list(folder.glob("events*"))) == 1


def test_later_points_are_further_apart(tmp_path: Path, client: redis.Redis, series: Series,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.reports.tensorboard.DENSE_SECONDS", 100.0)
    monkeypatch.setattr("five.reports.tensorboard.LATER_POINTS", 50)
    for second in range(1001):
        for kind in ("versions", "games"):
            client.xadd(series.key(kind), {"v": json.dumps({"version": second, "entropy": 1.0})},
                        f"{1_000_000 + 1000 * second}-0")
        if second % 50 == 0:
            writer(tmp_path / "often", series).update()
    writer(tmp_path / "once", series).update()
    found = points(tmp_path / "often")
    assert found == points(tmp_path / "once") == points(tmp_path / "once/games", "games/entropy")
    assert found[:101] == list(range(101)) and 200 < len(found) < 230
    apart = [after - before for before, after in pairwise(found[101:])]
    assert apart[0] == 3 and apart == sorted(apart) and apart[-1] == 20


def test_files_of_an_earlier_release_are_replaced(tmp_path: Path, series: Series) -> None:
    folder = tmp_path / "tensorboard"
    for _ in range(2):  # it wrote everything again at each start
        old = SummaryWriter(str(folder))
        for version in range(1, 6):
            old.add_scalar("learning/entropy", 0.1, version)
        old.close()
    for path in folder.glob("events*"):
        path.rename(path.with_name(path.name.replace("tfevents.", "tfevents.0", 1)))  # they are older
    learn(series, 1, 2, 3, 4, 5, 6)
    writer(folder, series).update()
    assert points(folder) == [1, 2, 3, 4, 5, 6]


def test_interrupted_update_is_repeated_whole(tmp_path: Path, series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "tensorboard"
    learn(series, 1, 2, 3)
    export = writer(folder, series)
    export.update()
    learn(series, 4, 5)
    with monkeypatch.context() as disk:
        disk.setattr("five.reports.tensorboard.replace_text", full)  # after the events were written
        with pytest.raises(OSError, match="No space left"):
            export.update()
    (path,) = folder.glob("events*")
    os.truncate(path, path.stat().st_size - 5)  # as a crash or a full disk leaves it
    export.update()
    learn(series, 6)
    writer(folder, series).update()
    assert points(folder) == [1, 2, 3, 4, 5, 6]


def test_lost_files_are_exported_again(tmp_path: Path, series: Series) -> None:
    folder = tmp_path / "tensorboard"
    learn(series, 1, 2)
    export = writer(folder, series)
    export.update()
    (path,) = folder.glob("events*")
    path.unlink()
    export.update()
    assert points(folder) == [1, 2]


def test_revert_drops_the_versions_left_behind(tmp_path: Path, series: Series) -> None:
    folder = tmp_path / "tensorboard"
    learn(series, *range(1, 11))
    series.extend("ratings", [{"version": v, "mu": 1.0} for v in (2, 8)])
    writer(folder, series).update()
    learn(series, 11, 12)  # version 11 continues version 5
    series.extend("ratings", [{"version": v, "mu": 1.0} for v in (9, 11)])  # the rating of 9 comes late
    writer(folder, series, (11, 5)).update()
    assert points(folder) == [1, 2, 3, 4, 5, 11, 12]
    assert points(folder, "rating/mu") == [2, 11]
    learn(series, 13)  # version 13 continues version 3
    writer(folder, series, (11, 5), (13, 3)).update()
    assert points(folder) == [1, 2, 3, 13]
    # A new export of the whole run shows the same.
    writer(tmp_path / "again", series, (11, 5), (13, 3)).update()
    assert points(tmp_path / "again") == [1, 2, 3, 13]
    assert points(tmp_path / "again", "rating/mu") == [2]


def test_restored_backup_drops_newer_versions(tmp_path: Path, series: Series) -> None:
    folder = tmp_path / "tensorboard"
    learn(series, *range(1, 9))
    writer(folder, series).update()
    learn(series, 4, 5)  # learned again from the backup's version 3
    writer(folder, series).update()
    assert points(folder) == [1, 2, 3, 4, 5]
