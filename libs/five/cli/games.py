"""`five games`: play the game's bots against each other and print statistics of their games."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dota.vec_game import BOTS, Winner
from five.agent.ratings import pairs_interval, wilson_interval
from five.evaluation.bot_games import (
    MARKED,
    MARKS,
    TIMED_ITEMS,
    BotGameRecord,
    TeamRecord,
    full_game_config,
    play,
    quick_game_config,
)
from five.run.load import ConfigError
from rapid.malformed import MALFORMED

# Ranges of real games with their sources. A row without a source has no range.
REAL = {
    "radiant": "50.75 % of 268 games [1]",
    "length": "median 37:08 [1]; mean 35 in patch 7.21 [2]",
    "last_hits": "214 [1, creeps killed of the game through ten]; 17 to 361 [3]",
    "kills": "15 and 22 [3]",
    "first_tower": "13.4 [4]",
    "first_roshan": "24.8 [4]",
}
# Means over the ten players of [4]. Its gold is all that was earned; net worth lacks what was used up or lost.
REAL_MARKS = {
    5: {"net_worth": 1224, "xp": 1269, "level": 3.7, "last_hits": 14.7},
    10: {"net_worth": 2881, "xp": 2990, "level": 6.7, "last_hits": 33.5},
    20: {"net_worth": 7149, "xp": 8005, "level": 12.5, "last_hits": 86.1},
    30: {"net_worth": 11934, "xp": 13932, "level": 17.3, "last_hits": 129.6},
}
MARK_NAMES = {"net_worth": "net worth", "xp": "experience", "level": "level", "last_hits": "last hits"}
SOURCES = (
    "[1] regional qualifiers of The International 2019 (luckbox.com/esports-news/article/ti9-qualifiers-dota-2-meta-"
    "hero-stats/)",
    "[2] professional games (click-storm.com/en/blogs/22294/)",
    "[3] one league game of June 2017, 31:28 long, the ten players' spread (odota/core, json/3254426673_output.json)",
    "[4] OG against PSG.LGD, The International 2018, patch 7.19, 36:28 long (odota/web, "
    "testcafe/cachedAjax/matches_4080856812_.json)",
)


@dataclass(frozen=True)
class StatisticRow:
    """A row of the table: the statistic, its value, and the range in real games."""

    what: str
    value: str
    real: str = ""


def games(first: str, second: str, count: int, seed: int, quick: bool, threads: int, as_json: bool,
          log: Path | None = None) -> int:
    """Play ``count`` games of two bots and print their table. Return the exit status.

    Each game is appended to ``log``, one JSON object a line, and the table covers the whole log, so that several
    calls with different seeds add up. Raises RuntimeError for a line of the log that is no game of these two bots, and
    ConfigError for an unknown bot or if there is no game at all. An incomplete last line, of a call that was killed, is
    discarded.
    """
    for name in (first, second):
        if name not in BOTS:
            raise ConfigError(f"unknown bot {name!r}; known bots: {', '.join(BOTS)}")
    game = quick_game_config() if quick else full_game_config()
    records = read_log(log, first, second) if log is not None and log.exists() else []

    def note(record: BotGameRecord) -> None:
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"first": first, "second": second, **asdict(record)}) + "\n")

    if count > 0:
        if log is not None:
            _open_log(log)
        pairs = count if first == second else (count + 1) // 2
        records += play(game, first, second, pairs, seed, threads=threads, concurrent=16 if quick else 8,
                        observe=not quick, on_game=note)
    if not records:
        raise ConfigError("--games 0: no game is played, and no --log has any")
    lines = table(first, second, records, quick)
    if as_json:
        print(json.dumps({line.what: line.value for line in lines}, indent=1))
    else:
        print(as_markdown(lines))
        if not quick:
            print("\n" + "\n".join(SOURCES))
    return 0


def read_log(path: Path, first: str, second: str) -> list[BotGameRecord]:
    """Return the games of a log, without an incomplete last line. Pairs of different calls stay separate."""
    records: list[BotGameRecord] = []
    call, seen = 0, set[tuple[int, int]]()
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            row: dict[str, Any] = json.loads(line)
            if (row.pop("first", None), row.pop("second", None)) != (first, second):
                raise ValueError("other bots")
            key = row["pair"], row["first_side"]
            if key in seen:
                call, seen = call + 1, set()
            seen.add(key)
            teams = [_team(team) for team in row["teams"]]
            records.append(BotGameRecord(row["pair"] + 1_000_000 * call, row["first_side"], Winner(row["winner"]),
                                         row["seconds"], (teams[0], teams[1]), row["first_tower"]))
        except MALFORMED:
            raise RuntimeError(f"{path}, line {number}: not a game of {first} against {second}") from None
    return records


def _open_log(path: Path) -> None:
    """Create the log if it is missing, and remove an incomplete last line. Raises OSError before any game is played."""
    with path.open("ab+") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _team(row: dict[str, Any]) -> TeamRecord:
    return TeamRecord(marks={int(mark): values for mark, values in row.pop("marks").items()}, **row)


def as_markdown(lines: Sequence[StatisticRow]) -> str:
    """Return the table as Markdown."""
    return "\n".join(["| | bots | real games |", "|---|---|---|",
                      *(f"| {line.what} | {line.value} | {line.real} |" for line in lines)])


def table(first: str, second: str, records: Sequence[BotGameRecord], quick: bool = False) -> list[StatisticRow]:
    """Return the rows of finished games. Intervals are 95 % intervals."""
    decided = [r for r in records if r.winner != Winner.DRAW]
    pairs = sorted({r.pair for r in records})
    scores = [statistics.mean(r.score for r in records if r.pair == pair) for pair in pairs]
    low, high = pairs_interval(scores)
    lines = [StatisticRow("games", f"{len(records)}, {len(records) - len(decided)} drawn")]
    if first != second:
        lines.append(StatisticRow(f"{first} beats {second}",
                                  f"{100 * statistics.mean(scores):.1f} % ({100 * low:.1f} to "
                                  f"{100 * high:.1f})"))
    lines += [*_sides(decided), _lengths(records)]
    return lines if quick else lines + _play(records)


def _sides(decided: Sequence[BotGameRecord]) -> list[StatisticRow]:
    radiant = sum(r.winner == Winner.RADIANT for r in decided)
    low, high = wilson_interval(radiant, len(decided))
    share = 100 * radiant / max(len(decided), 1)
    return [StatisticRow("Radiant wins", f"{share:.1f} % ({100 * low:.1f} to {100 * high:.1f})", REAL["radiant"])]


def _lengths(records: Sequence[BotGameRecord]) -> StatisticRow:
    minutes = sorted(r.seconds / 60 for r in records)
    tenth = len(minutes) // 10
    usual = sum(20 <= m <= 60 for m in minutes) / len(minutes)
    return StatisticRow("length, minutes",
                        f"median {statistics.median(minutes):.1f}, nine tenths {minutes[tenth // 2]:.1f} to "
                        f"{minutes[-1 - tenth // 2]:.1f}; 20 to 60: {100 * usual:.0f} %", REAL["length"])


def _play(records: Sequence[BotGameRecord]) -> list[StatisticRow]:
    teams = [(r, side, r.teams[side]) for r in records for side in (0, 1)]
    won = [t for r, side, t in teams if r.winner == (Winner.RADIANT, Winner.DIRE)[side]]
    lost = [t for r, side, t in teams if r.winner == (Winner.DIRE, Winner.RADIANT)[side]]

    def both(values: Sequence[float], digits: int = 0) -> str:
        if not values:
            return "none"
        middle = sorted(values)
        tenth = len(middle) // 10
        return (f"{statistics.mean(values):,.{digits}f} ({middle[tenth]:,.{digits}f} to "
                f"{middle[-1 - tenth]:,.{digits}f})")

    lines = [
        StatisticRow("kills, winners and losers", f"{both([t.kills for t in won])}, {both([t.kills for t in lost])}",
                     REAL["kills"]),
        StatisticRow("last hits a hero at the end", both([t.last_hits for _, _, t in teams]), REAL["last_hits"]),
        StatisticRow("denies a hero at the end", both([t.denies for _, _, t in teams])),
    ]
    for mark in MARKS:
        there = [t.marks[mark] for _, _, t in teams if mark in t.marks]
        lines += [StatisticRow(f"{MARK_NAMES[name]} a hero at {mark}:00",
                               both([values[name] for values in there], int(name == "level")),
                               f"{REAL_MARKS[mark][name]:,} [4]" if mark in REAL_MARKS else "") for name in MARKED]
    fallen = [r.first_tower / 60 for r in records if r.first_tower is not None]
    first_roshans = [min(times) / 60 for r in records
                     if (times := [t.first_roshan for t in r.teams if t.first_roshan is not None])]
    lines += [
        StatisticRow("first tower, minute", both(fallen, 1), REAL["first_tower"]),
        StatisticRow("first Aegis, minute", both(first_roshans, 1), REAL["first_roshan"]),
        StatisticRow("towers lost, winners and losers", f"{both([float(t.towers_lost) for t in won], 1)}, "
                     f"{both([float(t.towers_lost) for t in lost], 1)}"),
        StatisticRow("Aegis taken, winners and losers", f"{statistics.mean(t.roshans for t in won):.2f}, "
                     f"{statistics.mean(t.roshans for t in lost):.2f}" if won else "none"),
    ]
    for item in TIMED_ITEMS:
        got = [minute for _, _, t in teams for minute in t.items.get(item, [])]
        lines.append(StatisticRow(f"{item.removeprefix('item_').replace('_', ' ')}, minute", both(got, 1)))
    return lines
