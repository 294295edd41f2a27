"""`five ladder` on an ended run, with real versions and games."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from dota.config import GameConfig
from dota.replay import Replay
from dota.rule_changes import REVISION
from dota.spaces import Layout
from five.agent.model.policy import Policy
from five.agent.standings import Standing
from five.cli.ladder import ladder, play
from five.cli.watch import newest
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.journal import Journal
from five.evaluation.ladder import OfflineLadder
from five.evaluation.match import Contestant, PairedMatch, play_planned
from five.local.run_folder import RunFolder, RunUnavailable
from five.local.run_lock import LadderLock, RunInUse
from five.run.load import load, save
from rapid import tensorfile
from rapid.blobs import BlobStore
from tests.e2e.running import TINY

torch.set_num_threads(1)
OVERRIDES = [o for o in TINY if not o.startswith(("rating.", "game."))] + [
    "game.max_game_seconds=2", "game.start_seconds=-1", "rating.games_per_anchor_pair=2",
    "rating.anchors=[random, scripted]",
    "rating.games_per_round=4"]


def ended_run(path: Path, versions: tuple[int, ...] = (0, 4)) -> RunFolder:
    """A run's folder after `five train`, with archived versions of random parameters."""
    folder = RunFolder(path / "trial")
    folder.create()
    config = load("laptop-1v1", OVERRIDES).model_copy(update={"name": "trial"})
    save(config, folder.config)
    blobs = BlobStore(str(folder.path / "blobs"))
    for version in versions:
        torch.manual_seed(version)
        policy = Policy(Layout(config.game), config.model)
        tensors = {name: value.numpy() for name, value in policy.state_dict().items()}
        blobs.put(tensorfile.file_pieces(tensors, {}, label=str(version)), f"trial/versions/{version:010d}")
    return folder


def test_journal_discards_an_incomplete_change(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    journal = Journal(path)
    journal.write({"open": 1, "game:a": {"score": 1.0}})
    journal.write({"open": None, "rated:a": {"mu": 1.0}})
    whole = path.read_bytes()
    begun = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for size in range(begun, len(whole)):  # the second line is cut off anywhere
        path.write_bytes(whole[:size])
        assert Journal(path).rows == {"open": 1, "game:a": {"score": 1.0}}
        assert path.stat().st_size == size  # another process may be writing the rest
    path.write_bytes(whole[:-3])
    Journal(path).write({"b": 2})
    assert Journal(path).rows == {"open": 1, "game:a": {"score": 1.0}, "b": 2}
    path.write_bytes(whole)
    assert Journal(path).rows == {"game:a": {"score": 1.0}, "rated:a": {"mu": 1.0}}


def test_offline_rating_resumes_after_interruption(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ended_run(tmp_path)
    ladder(folder, 0, None, False)
    assert "no ratings yet" in capsys.readouterr().out
    with pytest.raises(RunUnavailable, match="version 3 .* not archived; archived are 0, 4"):
        ladder(folder, 4, [3], False)
    write, left = Journal.write, 8  # rules, zero, trial, four games, rating; then it breaks off in the anchors' games

    def breaking(self: Journal, rows: dict[str, Any]) -> None:
        nonlocal left
        left -= 1
        if left < -1:
            raise KeyboardInterrupt
        write(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "write", breaking)
        with pytest.raises(KeyboardInterrupt):
            ladder(folder, 4, None, False)
    before = Journal(folder.ladder_journal).rows
    assert "rated:version-0" in before and "open" in before
    assert ladder(folder, 4, None, False) == 0
    rows = Journal(folder.ladder_journal).rows
    assert rows["rated:version-0"] == before["rated:version-0"]  # not played again
    assert {"rated:random", "rated:scripted", "rated:version-4"} <= set(rows) and "open" not in rows
    out = capsys.readouterr().out
    assert "version-4" in out and "random play is 0; ± is one σ" in out
    Replay.load(newest(folder.path / "replays"))
    # With nothing missing nothing is played, and the standings are those that were kept.
    assert ladder(folder, 4, None, True) == 0
    assert {s["player"]: s["games"] for s in json.loads(capsys.readouterr().out)}["version-4"] == 4
    assert Journal(folder.ladder_journal).rows == rows


def test_offline_games_keep_the_runs_own_ratings(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=(4,))
    rows = {"format": 2, "open": {"number": 9, "player": "version-8"}, "game:9.x": {}} | {
        f"rated:{s.player}": vars(s) for s in (
            Standing("random", 0.0, 0.001, 1, 0.1, True), Standing("scripted", 9.0, 1.0, 1, 0.1, True),
            Standing("version-4", 5.0, 3.0, 2, 0.1, False, 0, {"random": [1, 1, 0]}, {"random": [0.75, 0.1, 1.0]}))}
    archive = ArchivedVersions(folder)
    kept = OfflineLadder(rows, Journal(folder.ladder_journal), archive.config.rating)
    assert kept.missing([4], 2) == [] and kept.missing([4], 4) == [4]
    kept.rate(archive, 4, 4, lambda text: None)
    found = {s.player: s for s in kept.standings()}
    assert found["version-4"].games == 4 and found["scripted"].mu == 9.0  # the run's references stay
    # Still so when it is looked at again; a run that has fitted its anchors once more has another scale.
    assert {s.player: s.games for s in OfflineLadder(rows, Journal(folder.ladder_journal), archive.config.rating)
            .standings()}["version-4"] == 4
    # The run goes on and rates the version by as many games, or makes it a reference: its own rating counts.
    for changes in ({"results": {"random": [3, 1, 0]}}, {"results": {"random": [2, 1, 0]}, "aborted": 1},
                    {"reference": True}):
        later = {**rows, "rated:version-4": {**rows["rated:version-4"], **changes}}  # type: ignore[dict-item]
        run = OfflineLadder(later, Journal(folder.ladder_journal), archive.config.rating)
        assert {s.player: (s.mu, s.reference) for s in run.standings()}["version-4"] == (5.0, "reference" in changes)
        assert run.missing([4], 4) == []
    moved = {**rows, "rated:scripted": {**rows["rated:scripted"], "mu": 12.0}}  # type: ignore[dict-item]
    again = OfflineLadder(moved, Journal(folder.ladder_journal), archive.config.rating)
    assert {s.player: (s.mu, s.games) for s in again.standings()}["version-4"] == (5.0, 2)
    assert Journal(folder.ladder_journal).rows and not list(folder.path.glob("ladder.jsonl.*"))  # nothing was written
    again.rate(archive, 4, 4, lambda text: None)
    assert len(list(folder.path.glob("ladder.jsonl.*"))) == 1
    # A run that rated its anchors only later has another scale: what was played here is put aside, not mixed in.
    Journal(folder.ladder_journal).write({"rated:scripted": rows["rated:scripted"]})
    again = OfflineLadder(rows, Journal(folder.ladder_journal), archive.config.rating)
    assert {s.player: s.games for s in again.standings()}["version-4"] == 2


@pytest.mark.parametrize("rules", [None, REVISION - 1])  # None: a journal of an earlier release
def test_games_under_earlier_rules_are_put_aside(tmp_path: Path, rules: int | None) -> None:
    folder = ended_run(tmp_path, versions=(4,))
    archive = ArchivedVersions(folder)

    def offline() -> OfflineLadder:
        return OfflineLadder({}, Journal(folder.ladder_journal), archive.config.rating)

    offline().rate(archive, 4, 2, lambda text: None)
    assert offline().missing([4], 2) == []
    Journal(folder.ladder_journal).write({"rules": rules})
    assert offline().missing([4], 2) == [4]
    offline().rate(archive, 4, 2, lambda text: None)
    assert offline().missing([4], 2) == [] and len(list(folder.path.glob("ladder.jsonl.*"))) == 1


Seeds = dict[tuple[str, str, int], set[int]]


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> Seeds:
    """The seeds with which the games of each pair were played, by both players and the pair's number."""
    found: Seeds = {}

    def planned(game: GameConfig, first: Contestant, second: Contestant, plan: list[tuple[int, int]], seed: int,
                **options: Any) -> PairedMatch:
        for pair, _ in plan:
            found.setdefault((first.name, second.name, pair), set()).add(seed)
        return play_planned(game, first, second, plan, seed, **options)

    monkeypatch.setattr("five.evaluation.ladder.play_planned", planned)
    return found


def test_pairings_have_seeds_of_their_own(tmp_path: Path, seeds: Seeds) -> None:
    folder, said = ended_run(tmp_path, versions=(0, 4)), list[str]()
    play(ArchivedVersions(folder), 4, None, said.append)
    by_pairing: dict[tuple[str, str], set[int]] = {}
    for (first, second, _), used in seeds.items():
        by_pairing.setdefault((first, second), set()).update(used)
    numbers = [number for used in by_pairing.values() for number in used]
    assert len(set(numbers)) == len(numbers) == len(by_pairing) >= 3
    assert all(0 <= number < 2**32 for number in numbers)
    assert {line.split(":")[0] for line in said} >= {"version-0 against random", "version-4 against random"}


def test_interrupted_pair_keeps_its_seed(tmp_path: Path, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both games of a pair have the same heroes and map events, also if the command is interrupted between them."""
    archive = ArchivedVersions(ended_run(tmp_path, versions=(4,)))
    write, left = Journal.write, 5  # zero, trial, and three of four games

    def breaking(self: Journal, rows: dict[str, Any]) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        write(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "write", breaking)
        with pytest.raises(KeyboardInterrupt):
            play(archive, 4, None, lambda text: None)
    play(archive, 4, None, lambda text: None)
    assert seeds.keys() == {("version-4", "random", 0), ("version-4", "random", 1)}
    assert all(len(used) == 1 for used in seeds.values())


def test_second_rating_process_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ended_run(tmp_path, versions=(4,))
    archive, refusals = ArchivedVersions(folder), []

    def second(text: str) -> None:
        """Start another rating while the first one plays, and look at the standings."""
        with pytest.raises(RunInUse) as error:
            ladder(folder, 4, None, False)
        refusals.append(str(error.value))
        assert ladder(folder, 0, None, False) == 0

    with LadderLock(folder.path):
        play(archive, 4, None, second)
    assert refusals
    for text in refusals:
        assert text.startswith(f"the ladder of {folder.path} is in use by process {os.getpid()} on ")
        assert "until that `five ladder --games` has ended" in text
    rows = Journal(folder.ladder_journal).rows
    assert ladder(folder, 4, None, False) == 0
    assert Journal(folder.ladder_journal).rows == rows


def test_run_folder_can_be_moved(tmp_path: Path) -> None:
    folder = ended_run(tmp_path, versions=(4,))
    config = load(folder.config)
    there = config.blobs.model_copy(update={"url": str(folder.path / "blobs")})
    save(config.model_copy(update={"blobs": there}), folder.path / "cluster.yaml")  # as starting it resolves it
    moved = folder.path.rename(tmp_path / "elsewhere")
    assert ArchivedVersions(RunFolder(moved)).load()[0] == 4
