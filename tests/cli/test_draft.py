"""`five draft` on an ended run, with real versions and games, and over REST."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from dota.config import GameConfig, evaluation_game
from dota.vec_game import VecGame
from five.agent.draft.leaves import HeroPool, LeafTable
from five.agent.draft.pick_order import DraftError
from five.cli.main import main
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.draft_table import make
from five.evaluation.line_up_values import PerGameReader
from five.evaluation.saved_state import save_evidence
from five.run import draft_tables
from five.run.load import load, save
from rapid.store.series import Record
from tests.cli.test_ladder import ended_run

HEROES = ["nevermore", "sniper", "lion", "sven"]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchivedVersions:
    """An ended run of four heroes, one a side."""
    folder = ended_run(tmp_path / "runs", versions=(0, 4))
    config = load(folder.config)
    save(config.model_copy(update={"game": config.game.model_copy(update={"hero_pool": HEROES})}), folder.config)
    monkeypatch.chdir(tmp_path)
    return ArchivedVersions(folder)


def test_leaf_is_the_win_heads_first_prediction(archive: ArchivedVersions) -> None:
    number, policy, _ = archive.load(4)
    game, pool = archive.config.game, draft_tables.pool_of(archive.config.game)
    assert pool == HeroPool(tuple(HEROES), 1) and pool.line_ups == 12
    leaves = make(policy, game, pool, {"version": number})
    games = VecGame(evaluation_game(game), 1)
    for (radiant, dire), win in zip(pool.teams(np.arange(12)).tolist(), leaves.win.reshape(-1).tolist(), strict=True):
        games.reset_as(0, 7, games.lineup([[HEROES[h] for h in radiant], [HEROES[h] for h in dire]]))
        acted = policy.act({name: torch.from_numpy(array[0]) for name, array in games.obs.items()},
                           policy.initial_state(2))
        ours, theirs = acted.aux["win_probability"].mean(-1).tolist()
        assert win == pytest.approx((ours + 1 - theirs) / 2, abs=1e-5)
    assert np.unique(leaves.win).size == 12  # the heroes are visible in the first observation


def test_table_is_independent_of_workers_and_resumption(archive: ArchivedVersions, tmp_path: Path) -> None:
    _, policy, _ = archive.load(4)
    game, pool = archive.config.game, draft_tables.pool_of(archive.config.game)
    whole = make(policy, game, pool, {"version": 4})
    threaded = make(policy, game, pool, {"version": 4}, threads=2, batch=5)
    np.testing.assert_allclose(whole.win, threaded.win, atol=1e-6)

    class Interrupted(Exception):
        pass

    partial = tmp_path / "version-4.partial"
    read = PerGameReader.read

    def breaks(done: int, seconds: float) -> None:
        raise Interrupted

    with pytest.raises(Interrupted), pytest.MonkeyPatch.context() as patched:
        patched.setattr("five.evaluation.draft_table.CHUNK", 4)
        make(policy, game, pool, {"version": 4}, partial=partial, on_progress=breaks)
    asked: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PerGameReader, "read",
                        lambda self, leaves: (asked.extend(leaves.tolist()), read(self, leaves))[1])
        again = make(policy, game, pool, {"version": 4}, partial=partial)
    assert asked == list(range(4, 12))
    np.testing.assert_allclose(again.win, whole.win, atol=1e-6)


def test_progress_counts_line_ups_and_partial_tables_are_saved_late(
        archive: ArchivedVersions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, policy, _ = archive.load(4)
    game, pool = archive.config.game, draft_tables.pool_of(archive.config.game)
    partial = tmp_path / "below" / "version-4.partial"
    partial.parent.mkdir()
    partial.write_bytes(b"of another release")
    monkeypatch.setattr("five.evaluation.draft_table.CHUNK", 5)
    seen: list[tuple[int, bool]] = []

    def note(done: int, seconds: float) -> None:
        assert seconds >= 0
        seen.append((done, partial.read_bytes() != b"of another release"))

    whole = make(policy, game, pool, {"version": 4}, partial=partial, on_progress=note)
    assert seen == [(5, False), (10, False), (12, False)]
    monkeypatch.setattr("five.evaluation.draft_table.SAVE_SECONDS", -1.0)
    partial.write_bytes(b"of another release")
    seen.clear()
    again = make(policy, game, pool, {"version": 4}, partial=partial, on_progress=note)
    assert seen == [(5, False), (10, True), (12, True)]
    np.testing.assert_array_equal(again.win, whole.win)


def test_interruption_without_a_partial_table_is_raised(archive: ArchivedVersions) -> None:
    _, policy, _ = archive.load(4)
    game = archive.config.game

    def stop(done: int, seconds: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        make(policy, game, draft_tables.pool_of(game), {"version": 4}, on_progress=stop)


def test_full_disk_at_the_end_loses_no_table(archive: ArchivedVersions, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    """The finished table cannot be stored. The next call resumes from the unfinished one."""
    def full(store: draft_tables.DraftTableStore, name: str, leaves: LeafTable) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "blobs")

    monkeypatch.setattr("five.evaluation.draft_table.SAVE_SECONDS", -1.0)
    partial = archive.folder.draft / "version-4.partial"
    with monkeypatch.context() as patched:
        patched.setattr(draft_tables.DraftTableStore, "put", full)
        assert main(["draft", "--make"]) == 2 and "No space left" in capsys.readouterr().err
    assert np.isfinite(draft_tables.parse(partial.read_bytes()).win).all()
    monkeypatch.setattr(PerGameReader, "read", lambda *arguments: pytest.fail("a line-up is read again"))
    assert main(["draft", "--make"]) == 0 and not partial.exists()
    assert draft_tables.DraftTableStore(archive.blobs, "trial").names() == ["version-4"]


def test_draft_command_output(archive: ArchivedVersions, capsys: pytest.CaptureFixture[str]) -> None:
    def five(*words: str) -> tuple[int, str, str]:
        status = main(["draft", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    status, out, err = five("--json")
    assert status == 0 and "12 line-ups of 4 heroes from version 4" in err
    found = json.loads(out)
    assert (found["order"], found["to_move"], len(found["choices"])) == ("DR", "D", 4)
    assert draft_tables.DraftTableStore(archive.blobs, "trial").names() == ["version-4"]
    status, out, err = five("--dire", "lion")
    assert status == 0 and err == "" and "Radiant picks next" in out and "unknown" in out
    assert [line.split()[0] for line in out.splitlines() if line.endswith("-") and "%" in line] != []
    status, out, _ = five("--dire", "lion", "--radiant", "sven", "--ban", "sniper")
    assert status == 0 and "at the game's start" in out
    assert five("--dire", "axe")[0] == 2 and "the pool has nevermore, sniper, lion, sven" in five("--dire", "axe")[2]
    assert "not in game.hero_pool" in five("--pool", "axe,lion")[2]
    assert five("--pool", "sven,lion", "--version", "0", "--make")[0] == 0
    names = draft_tables.DraftTableStore(archive.blobs, "trial").names()
    assert len(names) == 2 and names[1].startswith("version-0-")
    assert "version-4" in five("--tables")[1] and "unknown" in five("--calibration")[1]

    save_evidence([Record("1-0", 0.0, {"lineup": [[0], [1]], "winner": "radiant", "outcome": "selfplay", "version": 4,
                                       "win_probability": [0.7, 0.4]})], archive.folder.evidence)
    assert "over 1 games of self-play (versions 4 to 4)" in five("--calibration")[1]
    assert json.loads(five("--calibration", "--json")[1])["games"] == 1
    assert "30 games of self-play are required" in five("--calibration")[1]


@pytest.mark.parametrize(("right", "words"), [(0.5, "the win head knows nothing"), (0.8, "better than a constant")])
def test_draft_says_what_its_win_head_knows(archive: ArchivedVersions, capsys: pytest.CaptureFixture[str],
                                            right: float, words: str) -> None:
    """The verdict is on every draft. ``right``: the probability given to the winner."""
    save_evidence([Record(f"{n}-0", 0.0, {
        "lineup": [[0], [1]], "winner": ("radiant", "dire")[n % 2], "outcome": "selfplay", "version": 4,
        "win_probability": [(right, 1 - right)[n % 2], (1 - right, right)[n % 2]]}) for n in range(40)],
        archive.folder.evidence)
    for arguments in ([], ["--calibration"]):
        assert main(["draft", *arguments]) == 0
        assert words in capsys.readouterr().out


def test_mirror_match_has_no_draft(archive: ArchivedVersions) -> None:
    with pytest.raises(ValueError, match="mirror_match"):
        draft_tables.pool_of(archive.config.game.model_copy(update={"mirror_match": True}))


def test_pool_whose_table_would_be_too_large_is_refused() -> None:
    with pytest.raises(DraftError, match=r"25 heroes, 5 a side, have 823,727,520 line-ups: at most .* fit"):
        draft_tables.pool_of(GameConfig(hero_pool=["heroes_25"]))
    one_a_side = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["heroes_25"])
    assert draft_tables.pool_of(one_a_side).line_ups == 600


def test_only_newest_tables_of_own_pool_are_kept(archive: ArchivedVersions) -> None:
    tables = draft_tables.DraftTableStore(archive.blobs, "trial")
    _, policy, _ = archive.load(0)
    leaves = make(policy, archive.config.game, draft_tables.pool_of(archive.config.game), {"version": 0})
    for name in ("version-0", "version-2", "version-10", "version-0-0123abcd"):
        tables.put(name, leaves)
    tables.forget_old(2)
    assert tables.names() == ["version-10", "version-2", "version-0-0123abcd"]
    again = tables.read("version-2")
    assert again.pool == leaves.pool and np.array_equal(again.win, leaves.win)
    assert tables.about("version-2")["facts"]["version"] == 0
