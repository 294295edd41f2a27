"""The live view of a run in a terminal: what it is doing, how fast, how well, and what holds it back."""

import time
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from five.services.controller.console.bottleneck import bottleneck
from rapid.store.leases import Instance, Leases
from rapid.store.series import Series
from rapid.store.state import RunState

SPARKS = "▁▂▃▄▅▆▇█"
STALE_SECONDS = 120.0


def spark(values: list[float], width: int = 24) -> str:
    """The last ``width`` values as a line of blocks."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    return "".join(SPARKS[int((v - low) / (high - low) * (len(SPARKS) - 1)) if high > low else 0] for v in shown)


class View:
    """Reads a run's state and makes a picture of it. Keeps what it has read, so that each look reads only news."""

    def __init__(self, state: RunState, series: Series, leases: Leases, until: float | None) -> None:
        self._state = state
        self._series = series
        self._leases = leases
        self._until = until
        self._after = {"versions": "-", "ratings": "-", "games": "-"}
        self._records: dict[str, list[dict[str, Any]]] = {k: [] for k in self._after}
        self._last_version_at = 0.0

    def read(self) -> None:
        """Takes in what is new."""
        for kind, after in self._after.items():
            for record in self._series.read(kind, after):
                self._after[kind] = record.id
                self._records[kind].append(record.values)
                if kind == "versions":
                    self._last_version_at = record.at
            del self._records[kind][:-500]

    def newest(self, kind: str) -> dict[str, Any]:
        """The last record of a kind; empty before the first."""
        return self._records[kind][-1] if self._records[kind] else {}

    def render(self) -> Panel:
        """The picture."""
        status = self._state.status()
        live = self._leases.live()
        versions, ratings, games = (self._records[k] for k in ("versions", "ratings", "games"))
        newest = versions[-1] if versions else {}
        title = f"{self._state.run}   {status.status if status else 'not started'}"
        if self._until is not None:
            left = max(self._until - time.time(), 0)
            title += f"   {int(left // 60)}:{int(left % 60):02d} left"
        return Panel(Group(self._learning(newest, versions), self._playing(games, ratings), self._services(live),
                           Text(f"bottleneck: {bottleneck(live, newest)}", style="yellow"), *self._warnings(newest)),
                     title=title, expand=True)

    def _learning(self, newest: dict[str, Any], versions: list[dict[str, Any]]) -> Table:
        table = Table.grid(padding=(0, 3))
        cells = [
            ("version", newest.get("version", "-")),
            ("hero-steps/s played", _number(newest.get("hero_steps_per_second"))),
            ("learned", _number(newest.get("consumed_per_second"))),
            ("staleness median", _number(newest.get("staleness_median"), 1)),
            ("sample reuse", _number(newest.get("reuse"), 2)),
            ("entropy", _number(newest.get("entropy"), 2)),
            ("explained variance", _number(newest.get("explained_variance"), 2)),
        ]
        table.add_row(*[Text(name, style="dim") for name, _ in cells])
        table.add_row(*[Text(str(value), style="bold") for _, value in cells])
        return table

    def _playing(self, games: list[dict[str, Any]], ratings: list[dict[str, Any]]) -> Table:
        table = Table.grid(padding=(0, 3))
        rated = [r for r in ratings if r.get("mu") is not None]
        last = rated[-1] if rated else {}
        recent = games[-60:]
        cells = [("TrueSkill", f"{last['mu']:.1f} ± {last['sigma']:.1f} {spark([r['mu'] for r in rated])}"
                  if last else "-")]
        cells += [(f"wins against {n}", said) for n, said in win_rates(last)]
        for key in ("last_hits", "denies"):
            values = [g["statistics"][key] for g in recent if key in g.get("statistics", {})]
            if values:
                cells.append((f"{key.replace('_', ' ')} a game", f"{sum(values) / len(values):.1f}"))
        table.add_row(*[Text(name, style="dim") for name, _ in cells])
        table.add_row(*[Text(value, style="bold") for _, value in cells])
        return table

    def _services(self, live: list[Instance]) -> Table:
        table = Table(box=None, pad_edge=False)
        for column in ("service", "id", "what it says"):
            table.add_column(column, style="dim" if column == "id" else "")
        for instance in live:
            said = "  ".join(f"{k} {_number(v, 2) if isinstance(v, float) else v}"
                             for k, v in list(instance.stats.items())[:7] if not isinstance(v, dict | list))
            table.add_row(instance.kind, instance.id, said)
        return table

    def _warnings(self, newest: dict[str, Any]) -> list[Text]:
        out = []
        if self._last_version_at and time.time() - self._last_version_at > STALE_SECONDS + 5 * newest.get("seconds", 0):
            out.append(Text(f"no new version for {time.time() - self._last_version_at:.0f} s", style="bold red"))
        if newest.get("skipped"):
            out.append(Text("gradient steps were skipped: see the optimizer's log", style="bold red"))
        return out


def win_rates(rating: dict[str, Any]) -> list[tuple[str, str]]:
    """A rated version's scores against bots as a person reads them, with their 95 % intervals where they are known."""
    told = []
    for name, share in sorted(rating.get("win_rates", {}).items()):
        bounds = rating.get("win_intervals", {}).get(name)
        told.append((name, f"{100 * share:.0f} %" + (f" ({100 * bounds[0]:.0f} to {100 * bounds[1]:.0f})" if bounds
                                                    else "")))
    return told


def plain(state: RunState, newest: dict[str, Any], rating: dict[str, Any]) -> str:
    """One line for a terminal that cannot be redrawn."""
    status = state.status()
    parts = [f"{status.status if status else '-'}", f"version {newest.get('version', '-')}",
             f"{_number(newest.get('hero_steps_per_second'))} hero-steps/s",
             f"staleness {_number(newest.get('staleness_median'), 1)}", f"reuse {_number(newest.get('reuse'), 2)}"]
    if rating.get("mu") is not None:
        parts.append(f"TrueSkill {rating['mu']:.1f} ± {rating['sigma']:.1f} (version {rating['version']})")
        parts += [f"{n} {said}" for n, said in win_rates(rating)]
    return "  ".join(parts)


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
