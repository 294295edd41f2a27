"""`five ladder`: print the standings of a run's versions and play missing rating games."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from five.agent.standings import Standing
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.journal import Journal
from five.evaluation.ladder import OfflineLadder
from five.local.run_folder import RunFolder, RunUnavailable
from five.local.run_lock import LadderLock
from five.run.load import ConfigError, load_stored
from rapid.store import acl
from rapid.store.connection import connect
from rapid.store.state import RunState


def ladder(folder: RunFolder, games: int, versions: Sequence[int] | None, as_json: bool) -> int:
    """Print the standings. Return the exit status.

    With ``games``, first play what each archived version (or each of ``versions``) lacks for a rating of so many
    games. Raises ConfigError, RunUnavailable, and RunInUse while another process plays such games.
    """
    if (games and games < 2) or (versions and not games):
        raise ConfigError("--games must be at least 2; --versions needs --games")
    archive = ArchivedVersions(folder)
    if games:
        with LadderLock(folder.path):
            play(archive, games, versions, (lambda text: None) if as_json else print)
    standings = ladder_of(archive).standings()
    if as_json:
        print(json.dumps([{**asdict(s), "games": s.games} for s in standings]))
        return 0
    print(table(standings) if standings else f"run {folder.name!r} has no ratings yet; `five ladder --games 20` "
          "rates its archived versions in this process")
    return 0


def play(archive: ArchivedVersions, games: int, versions: Sequence[int] | None, say: Callable[[str], None]) -> None:
    """Play what versions lack for a rating of so many games. Raises RunUnavailable for one that is not archived."""
    archived = archive.numbers()
    if strangers := set(versions or ()) - set(archived):
        raise RunUnavailable(f"version {min(strangers)} of run {archive.folder.name!r} is not archived; archived are "
                             f"{', '.join(map(str, archived)) or 'none'}")
    ladder = ladder_of(archive)
    for version in ladder.missing(versions or archived, games):
        standing = ladder.rate(archive, version, games, say)
        say(f"version {version}: {standing.mu:.1f} ± {standing.sigma:.1f}")


def ladder_of(archive: ArchivedVersions) -> OfflineLadder:
    """Return the ladder of the run's own ratings and of the games played by this command."""
    return OfflineLadder(rows_of(archive.folder), Journal(archive.folder.ladder_journal), archive.config.rating)


def rows_of(folder: RunFolder) -> dict[str, Any]:
    """Return the rows of a run's ratings: from its store while it runs, otherwise from its folder."""
    try:
        cluster = folder.cluster()
    except RunUnavailable:
        return dict(json.loads(folder.ladder.read_text(encoding="utf-8"))) if folder.ladder.exists() else {}
    config = load_stored(folder.path / "cluster.yaml")
    client = connect(cluster.state_url, config.store, "state", folder.login(acl.CONTROLLER, cluster.state_url))
    return RunState(client, config.name).table("ratings").all()


def table(standings: Sequence[Standing]) -> str:
    """Return the standings as text: ratings with one σ, and scores against the bots with 95 % intervals."""
    lines = [f"{'player':16s} {'TrueSkill':>9s} {'±':>5s} {'games':>6s} {'aborted':>8s}  {'':9s} score against bots"]
    for s in standings:
        scores = "  ".join(f"{name} {100 * score:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
                           for name, (score, low, high) in sorted(s.scores.items()) if not name.startswith("version-"))
        lines.append(f"{s.player:16s} {s.mu:9.1f} {s.sigma:5.1f} {s.games:6d} {s.aborted:8d}  "
                     f"{'reference' if s.reference else '':9s} {scores}")
    draws = max(standings, key=lambda s: s.trial).draw_probability
    return "\n".join([*lines, f"random play is 0; ± is one σ; {100 * draws:.0f} % of games between equals are drawn"])
