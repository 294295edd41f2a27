"""`five draft`: show the win probability of each open pick of a draft, and the evidence for it."""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from five.agent.draft.pick_order import DraftError
from five.cli import numbers
from five.cli.run_selection import add_address, controller_of, require_agent_alone
from five.local.rest_client import ControllerClient
from five.local.run_folder import find_run

if TYPE_CHECKING:  # they need torch, which takes a second to import
    from five.evaluation.archived_versions import ArchivedVersions
    from five.packed_agents.draft_archive import AgentArchive

Arguments = argparse.Namespace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_address(parser)
    parser.add_argument("--agent", help="use the win head of this packed agent (name or folder)")
    parser.add_argument("--version", type=numbers.version, default=-1, help="version whose win head is used; by "
                        "default the newest table's, otherwise the newest archived")
    for team in ("radiant", "dire"):
        parser.add_argument(f"--{team}", type=_names, default=[], metavar="HERO,...",
                            help=f"{team.title()}'s picks so far")
    parser.add_argument("--ban", type=_names, default=[], metavar="HERO,...", dest="banned", help="banned heroes")
    parser.add_argument("--order", default="", help="order of picks, R and D; by default DRRDRDRDDR for five a side")
    parser.add_argument("--pool", type=_names, default=[], metavar="HERO,...",
                        help="draft only from these heroes of the run's pool; needs its own table")
    parser.add_argument("--threads", type=numbers.integer(1, 1024), default=1,
                        help="workers that compute a missing table")
    parser.add_argument("--make", action="store_true", help="only compute the table")
    parser.add_argument("--tables", action="store_true", help="list the run's tables")
    parser.add_argument("--calibration", action="store_true", help="print the calibration of the win head")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def run(arguments: Arguments) -> int:
    """Run the command: of a packed agent, with --url over REST, otherwise from the run's folder. Return the exit
    status.

    Raises AgentUnavailable, ApiError, RunUnavailable, RuntimeError.
    """
    require_agent_alone(arguments)
    try:
        if arguments.agent:
            from five.packed_agents.draft_archive import AgentArchive
            from five.packed_agents.folder import find_agent

            return _run_locally(AgentArchive(find_agent(arguments.agent)), arguments)
        if arguments.url:
            return _remote(controller_of(arguments), arguments)
        from five.evaluation.archived_versions import ArchivedVersions

        return _run_locally(ArchivedVersions(find_run(arguments.run)), arguments)
    except DraftError as error:
        raise RuntimeError(str(error)) from None


def _remote(controller: ControllerClient, arguments: Arguments) -> int:
    if arguments.make or arguments.pool:
        raise RuntimeError("--make and --pool need the run's folder. In a cluster the evaluator computes the tables "
                           "that are small enough (services.evaluator.draft_line_ups)")
    if arguments.tables:
        _tables(controller.get("draft/tables")["tables"], arguments)
    elif arguments.calibration:
        _calibration(controller.get("draft/calibration"), arguments)
    else:
        found = controller.get(
            "draft", radiant=",".join(arguments.radiant), dire=",".join(arguments.dire),
            banned=",".join(arguments.banned), order=arguments.order or None,
            table=f"version-{arguments.version}" if arguments.version >= 0 else None)
        _show(found, None if arguments.json else controller.get("draft/calibration"), arguments)
    return 0


def _run_locally(archive: "ArchivedVersions | AgentArchive", arguments: Arguments) -> int:
    from five.agent.draft.advice import advise
    from five.agent.draft.evidence import calibration_json
    from five.agent.draft.summary import summarize_draft
    from five.evaluation.saved_state import load_evidence
    from five.run import draft_tables

    tables = draft_tables.DraftTableStore(archive.blobs, archive.config.name)
    if arguments.tables:
        _tables([{"name": name, **tables.about(name)} for name in tables.names()], arguments)
        return 0
    evidence = load_evidence(archive.folder.evidence)
    reliability = calibration_json(evidence.calibration())
    if arguments.calibration:
        _calibration(reliability, arguments)
        return 0
    leaves = _load_leaves(archive, tables, arguments)
    if not arguments.make:
        picks = arguments.radiant, arguments.dire, arguments.banned
        advice = advise(leaves, *picks, arguments.order)
        _show(summarize_draft(leaves, evidence, advice, *picks), reliability, arguments)
    return 0


def _load_leaves(archive: "ArchivedVersions | AgentArchive", tables: Any, arguments: Arguments) -> Any:
    """Return the requested table: the stored one, or a new one, which is stored."""
    from five.evaluation.draft_table import make
    from five.run import draft_tables
    from rapid.blobs import BlobMissing

    game = archive.config.game
    pool = draft_tables.pool_of(game, arguments.pool or None)
    number = arguments.version
    if number < 0:
        known = archive.numbers()
        # An existing table is preferred to a slightly newer version; --make computes the newest version's.
        made = [draft_tables.version_of(name) for name in tables.names()
                if name == draft_tables.table_name(draft_tables.version_of(name), pool, game)]
        number = made[0] if made and not arguments.make else known[-1] if known else -1
    name = draft_tables.table_name(number, pool, game)
    try:
        return tables.read(name)
    except BlobMissing:
        pass
    number, policy, meta = archive.load(number)
    try:
        archive.folder.draft.mkdir(parents=True, exist_ok=True)  # before minutes of work
    except OSError as error:
        raise RuntimeError(f"the table cannot be stored: {archive.folder.draft}: {error.strerror}. Tables of packed "
                           "agents are in $XDG_CACHE_HOME, by default ~/.cache: set it to a folder that you can write"
                           ) from None
    shown = 0.0

    def progress(done: int, seconds: float) -> None:
        nonlocal shown
        if time.monotonic() - shown > 5 and sys.stderr.isatty():
            shown = time.monotonic()
            print(f"{done:,} line-ups, {done / max(seconds, 1e-6):,.0f} a second", file=sys.stderr)

    print(f"reading {pool.line_ups:,} line-ups of {len(pool.heroes)} heroes from version {number}; it resumes "
          "after an interruption", file=sys.stderr)
    began = time.monotonic()
    partial = archive.folder.draft / f"{name}.partial"
    leaves = make(policy, game, pool, {"version": number, "schema": meta.get("schema")}, threads=arguments.threads,
                  partial=partial, on_progress=progress)
    tables.put(name, leaves)
    partial.unlink(missing_ok=True)
    print(f"done in {time.monotonic() - began:.1f} s: draft/{name}", file=sys.stderr)
    return leaves


def _tables(found: list[dict[str, Any]], arguments: Arguments) -> None:
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    for table in found:
        print(f"{table['name']:24s} {len(table['heroes'])} heroes, {table['team']} a side"
              + (", both teams from the whole pool" if table["shared"] else ""))
    if not found:
        print("no table yet: `five draft` computes one")


def _calibration(found: dict[str, Any], arguments: Arguments) -> None:
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    print(calibration_line(found))
    if verdict := verdict_line(found):
        print(verdict)
    for row in found["bins"]:
        if row["games"]:
            print(f"  predicted {100 * row['predicted']:5.1f} %   won {100 * row['won']:5.1f} % ("
                  f"{100 * row['at_least']:.0f} to {100 * row['at_most']:.0f})   {row['games']} games")


def calibration_line(found: dict[str, Any]) -> str:
    """Return the win head's calibration as one line."""
    if not found["games"]:
        return "calibration of the win head: unknown, no recorded self-play game has a prediction"
    return (f"calibration of the win head over {found['games']:,} games of self-play (versions {found['first']} to "
            f"{found['last']}): off by {100 * found['error']:.1f} points on average; Brier score {found['brier']:.3f}, "
            f"{found['brier_constant']:.3f} for a constant prediction")


def verdict_line(found: dict[str, Any]) -> str:
    """Return whether the win head predicts better than a constant, as one line; "" without games."""
    from five.agent.draft.evidence import VERDICT_GAMES

    if not found["games"]:
        return ""
    if found.get("is_informative") is None:
        return f"whether the win head knows anything is unknown: {VERDICT_GAMES} games of self-play are required"
    gain = f"{found['brier_constant'] - found['brier']:.4f} ± {found['gain_error']:.4f}"
    if found["is_informative"]:
        return f"the win head predicts better than a constant: its Brier score is lower by {gain} (standard error)"
    return (f"the win head knows nothing, so that these values are noise: its Brier score is lower than a constant's "
            f"by {gain}, and two standard errors are required")


def _show(found: dict[str, Any], reliability: dict[str, Any] | None, arguments: Arguments) -> None:
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    facts = found["facts"]
    print(f"version {facts.get('version', '?')}, {len(found['heroes'])} heroes, {found['team']} a side, "
          f"{found['line_ups']:,} line-ups; order {' '.join(found['order'])}"
          + ("; both teams may pick the same hero, because the pool is too small for two teams"
             if found["shared"] else ""))
    for team in ("radiant", "dire", "banned"):
        print(f"{team:8s} {', '.join(found[team]) or '-'}")
    moving = {"R": "Radiant", "D": "Dire", "": ""}[found["to_move"]]
    ending = f"with optimal picks of both from here; {moving} picks next" if moving else "at the game's start"
    print(f"Radiant wins {100 * found['win']:.1f} %, Dire {100 - 100 * found['win']:.1f} %, {ending}")
    if reliability is not None and not reliability.get("is_informative") and (verdict := verdict_line(reliability)):
        print(verdict)
    if found["choices"]:
        print(f"\n{'pick':20s} {moving + ' wins':>14s}   played   rarest pair with the picks so far")
    for row in found["choices"]:
        played = "?" if row["played"] is None else f"{row['played']:,}"
        print(f"{row['hero']:20s} {100 * row['own']:12.1f} %  {played:>7s}   {pair(row['rarest'])}")
    print(f"\nsupport: {support_line(found)}")
    if reliability is not None:
        print(calibration_line(reliability))
        if reliability.get("is_informative"):
            print(verdict_line(reliability))


def pair(rarest: dict[str, Any] | None) -> str:
    """Return a pair of heroes and its number of games as text."""
    if rarest is None:
        return "-"
    return f"{'with' if rarest['allied'] else 'against'} {rarest['other']}: {rarest['games']:,} games"


def support_line(found: dict[str, Any]) -> str:
    """Return how often training has seen the picks so far, as one line."""
    if not found["games"]:
        return "unknown: no recorded training game has its line-up"
    if found["support"] is None:
        return f"{found['games']:,} training games are counted"
    rare = found["support"]
    return (f"of {found['games']:,} training games the rarest pair of the picks, {rare['hero']} "
            f"{'with' if rare['allied'] else 'against'} {rare['other']}, was in {rare['games']:,}")
