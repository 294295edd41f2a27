"""The report of a run: one self-contained HTML page, made from the time series in its state."""

import html
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cli.live import win_rates
from cli.plots import Line, Mark, Plot, draw, gaps, line
from rapid.store.applied import Plans
from rapid.store.series import Record, Series
from rapid.store.state import RunState

STALENESS_TARGET = 1.0  # Berner et al. 2019, section 4.1: kept between 0 and 1
SMOOTH_GAMES = 40
EVENTS = 500  # shown at most


@dataclass(frozen=True)
class RunRecords:
    """Everything that a report is made of."""

    name: str
    began: float  # seconds since the epoch
    versions: list[Record]
    games: list[Record]
    ratings: list[Record]
    events: list[dict[str, Any]]
    reuse_target: float = 1.0
    surgeries: Sequence[tuple[float, str]] = ()  # seconds since the epoch, name


def collect(state: RunState, series: Series, reuse_target: float) -> RunRecords:
    """Reads all that a run's store holds for its report."""
    first = state.events.read(limit=1)
    events = [{"at": e.at, "who": e.who, "what": e.what, "details": e.details}
              for e in reversed(state.events.last(EVENTS))]
    return RunRecords(state.run, first[0].at if first else time.time(), list(series.read("versions")),
                      list(series.read("games")), list(series.read("ratings")), events, reuse_target,
                      _surgeries(state))


def _surgeries(state: RunState) -> list[tuple[float, str]]:
    """When each plan of the run's chain was applied, and what it is called, with its first version."""
    record = state.record()
    plans = Plans(state).all()
    rows = [plans[digest] for digest in (record.chain if record is not None else ()) if digest in plans]
    return [(float(row["at"]), f"{row['name']} (v{row['version']})") for row in rows]


def plots(run: RunRecords) -> list[Plot]:
    """Every plot of the report, most important first."""
    v, g, b = run.versions, run.games, run.began

    def of(key: str, label: str, smooth: int = 1) -> Line:
        return line(v, b, label, at(key), smooth)

    return [
        _rating(run),
        _win_rates(run),
        Plot("Staleness", "versions", [of("staleness_median", "median"), of("staleness_mean", "mean"),
                                       of("staleness_p95", "95th percentile")],
             target=(STALENESS_TARGET, "target of the paper (0 to 1)")),
        Plot("Sample reuse", "uses a sample", [of("reuse", "over the whole run"), of("reuse_recent", "recent")],
             target=(run.reuse_target, "target")),
        _per_game(run, "Last hits", ["last_hits"]),
        _per_game(run, "Denies, kills and deaths", ["denies", "kills", "deaths"]),
        Plot("Length of a game", "seconds of game time", [line(g, b, "all games", at("game_seconds"),
                                                               SMOOTH_GAMES)]),
        _reward_terms(run),
        Plot("Throughput", "per second", [of("hero_steps_per_second", "hero-steps played"),
                                          of("consumed_per_second", "hero-steps learned from")]),
        Plot("Time of the optimizer", "share", [of("busy_share", "computing"),
                                                of("wait_share", "waiting for samples")]),
        Plot("Policy", "nats", [of("entropy", "entropy")]),
        Plot("Change of the policy", "", [of("approx_kl", "approximate KL"), of("clip_fraction", "clipped share")]),
        Plot("Value", "", [of("explained_variance", "explained variance"), of("loss_value", "loss")]),
        Plot("Schedules", "", [of("learning_rate", "learning rate"), of("entropy_coefficient", "entropy coefficient"),
                               of("team_spirit", "team spirit")], log=True),
    ]


def at(*path: str) -> Callable[[dict[str, Any]], float | None]:
    """Reads the value at a path of a record; None where there is none."""
    def read(values: dict[str, Any]) -> float | None:
        found: Any = values
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return None if found is None else float(found)

    return read


def bound(opponent: str, end: int) -> Callable[[dict[str, Any]], float | None]:
    """Reads an end (0 or 1) of a win rate's interval."""
    def read(values: dict[str, Any]) -> float | None:
        found = values.get("win_intervals", {}).get(opponent)
        return None if found is None else float(found[end])

    return read


def _rating(run: RunRecords) -> Plot:
    curve = line(run.ratings, run.began, "latest version", at("mu"))
    sigma = line(run.ratings, run.began, "", lambda r: r.get("sigma") if r.get("mu") is not None else None)
    if len(curve.x) == len(sigma.x) and len(curve.x):
        curve = Line(curve.label, curve.x, curve.y, curve.y - sigma.y, curve.y + sigma.y)
    return Plot("TrueSkill", "points", [curve], target=(0.0, "random play"), note="The band is one σ.")


def _win_rates(run: RunRecords) -> Plot:
    against = sorted({name for r in run.ratings for name in r.values.get("win_rates", {})})
    lines = []
    for name in against:
        score = line(run.ratings, run.began, f"against {name}", at("win_rates", name))
        low, high = (line(run.ratings, run.began, "", bound(name, i)) for i in (0, 1))
        known = len(score.x) == len(low.x) > 0
        lines.append(Line(score.label, score.x, score.y, low.y, high.y) if known else score)
    return Plot("Score of each rated version", "share of games, a draw being half", lines,
                note="Of that version's own games alone. The bands are 95 % intervals.")


def _per_game(run: RunRecords, title: str, keys: Sequence[str]) -> Plot:
    lines = []
    for key in keys:
        label = key.replace("_", " ")
        lines.append(line(run.games, run.began, label, at("statistics", key), SMOOTH_GAMES))
    return Plot(f"{title} a hero and game", "", lines, note=f"Means over {SMOOTH_GAMES} training games.")


def _reward_terms(run: RunRecords) -> Plot:
    sums: dict[str, float] = defaultdict(float)
    for record in run.games:
        for term, value in record.values.get("rewards", {}).items():
            sums[term] += abs(value)
    largest = sorted(sums, key=lambda t: -sums[t])[:8]
    return Plot("Reward by term", "a hero and game, weighted",
                [line(run.games, run.began, term.replace("_", " "), at("rewards", term),
                      SMOOTH_GAMES) for term in largest if sums[term] > 0],
                note=f"Before the other team's is subtracted. Means over {SMOOTH_GAMES} games; the largest eight.")


def headline(run: RunRecords) -> list[tuple[str, str]]:
    """The figures at the top: (name, value)."""
    out = [("running for", f"{(_last_at(run) - run.began) / 60:.0f} min")]
    if run.versions:
        last = run.versions[-1].values
        out.append(("version", str(last.get("version", "?"))))
        if "hero_steps" in last:
            out.append(("hero-steps learned from", f"{last['hero_steps']:,.0f}"))
        recent = [r.values for r in run.versions[-50:]]
        for key, name in (("staleness_median", "median staleness"), ("reuse", "sample reuse")):
            values = [r[key] for r in recent if r.get(key) is not None]
            if values:
                out.append((name, f"{np.median(values):.2f}"))
    if run.games:
        out.append(("games played", f"{len(run.games):,}"))
    rated = [r for r in run.ratings if r.values.get("mu") is not None]
    if rated:
        newest = rated[-1].values
        out.append(("TrueSkill", f"{newest['mu']:.1f} ± {newest.get('sigma', 0):.1f}"))
        out += [(f"version {newest.get('version', '?')}'s score against {n}", said) for n, said in win_rates(newest)]
    return out


def _last_at(run: RunRecords) -> float:
    return max([r[-1].at for r in (run.versions, run.games, run.ratings) if r] + [run.began])


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1340px;padding:24px;color:#222;background:#fafafa}}
h1{{font-size:24px;margin:0 0 4px}} h2{{font-size:15px;margin:0 0 4px}}
.head{{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}}
.head div{{background:#fff;border:1px solid #e2e2e2;border-radius:8px;padding:8px 14px}}
.head b{{display:block;font-size:19px}} .head span,.note{{color:#666;font-size:12px}}
.grid{{display:grid;grid-template-columns:repeat(auto-fill,minmax(400px,1fr));gap:16px}}
.card{{background:#fff;border:1px solid #e2e2e2;border-radius:8px;padding:12px}} svg{{width:100%;height:auto}}
table{{border-collapse:collapse;font-size:13px;background:#fff}} td{{padding:3px 10px;border-bottom:1px solid #eee}}
</style></head><body>
<h1>{name}</h1><div class="note">{made}</div><div class="head">{head}</div><div class="grid">{cards}</div>
<h2 style="margin-top:24px">Events</h2><table>{events}</table></body></html>
"""


def render(run: RunRecords, now: float | None = None) -> str:
    """The page as HTML text."""
    shaded = gaps(run.versions, run.began)
    marks = [Mark((at - run.began) / 60.0, name) for at, name in run.surgeries]
    head = "".join(f"<div><b>{html.escape(v)}</b><span>{html.escape(k)}</span></div>" for k, v in headline(run))
    cards = "".join(
        f'<div class="card"><h2>{html.escape(p.title)}</h2>{draw(p, shaded, marks)}'
        f'<div class="note">{html.escape(p.note)}</div></div>' for p in plots(run))
    rows = "".join(
        f"<tr><td>{(e.get('at', run.began) - run.began) / 60:.1f} min</td><td>{html.escape(str(e.get('who', '')))}</td>"
        f"<td>{html.escape(str(e.get('what', '')))}</td><td>{html.escape(str(e.get('details', '')))}</td></tr>"
        for e in run.events)
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(now))
    note = f"made {made}" + ("; shaded: no version came out" if shaded else "")
    note += "; upright lines: surgery" if marks else ""
    return PAGE.format(name=html.escape(run.name), made=note, head=head, cards=cards, events=rows)


def save_records(run: RunRecords, path: Path) -> None:
    """Writes the records of versions and ratings as JSON, each with the minutes since the run began; beside first and
    then renamed."""
    tree = {kind: [{"minutes": (r.at - run.began) / 60.0, **r.values} for r in records]
            for kind, records in (("versions", run.versions), ("ratings", run.ratings))}
    beside = path.with_suffix(".json.partial")
    beside.write_text(json.dumps({"name": run.name, "began": run.began, **tree}))
    beside.replace(path)


def write(run: RunRecords, path: Path) -> None:
    """Writes the page, beside first and then renamed."""
    beside = path.with_suffix(".html.partial")
    beside.write_text(render(run))
    beside.replace(path)
