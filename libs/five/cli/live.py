"""Live display of a run: a panel for a terminal, or one line per interval for a pipe or a file."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from five.reports.run_report import win_rates
from five.services.controller.console.bottleneck import bottleneck
from rapid.store.leases import Instance, Leases
from rapid.store.series import Series
from rapid.store.state import RunState

SPARKS = "▁▂▃▄▅▆▇█"
STALE_SECONDS = 120.0
LINE_WIDTH = 80  # columns of a plain line at most
CELLS_PER_ROW = 3  # names with their values that fit 80 columns side by side
NAME_WIDTH, VALUE_WIDTH = 14, 8  # columns of a name and of its value
# Names of the heads by their names in a version's record.
ACTION_HEADS = {"action": "action", "delay": "delay", "offset": "offset", "unit": "unit"}
AUXILIARY_HEADS = {"win_probability": "win", "net_worth_rank": "rank", "building_events": "buildings"}
RECENT_GAMES = 60  # games whose statistics are averaged


def spark(values: list[float], width: int = 24) -> str:
    """Return the last ``width`` values as a line of block characters."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    return "".join(SPARKS[int((v - low) / (high - low) * (len(SPARKS) - 1)) if high > low else 0] for v in shown)


class LiveView:
    """Reader of a run's records that renders their newest values. Each `read` fetches only new records."""

    def __init__(self, state: RunState, series: Series, leases: Leases, until: float | None) -> None:
        self._state = state
        self._series = series
        self._leases = leases
        self._until = until
        self._after = {"versions": "-", "ratings": "-", "games": "-"}
        self._records: dict[str, list[dict[str, Any]]] = {k: [] for k in self._after}
        self._last_version_at = 0.0

    def read(self) -> None:
        """Fetch the records that were appended since the last call."""
        for kind, after in self._after.items():
            for record in self._series.read(kind, after):
                self._after[kind] = record.id
                self._records[kind].append(record.values)
                if kind == "versions":
                    self._last_version_at = record.at
            del self._records[kind][:-500]

    def newest(self, kind: str) -> dict[str, Any]:
        """Return the last record of a kind, empty before the first."""
        return self._records[kind][-1] if self._records[kind] else {}

    def render(self, warnings: Sequence[str] = ()) -> Panel:
        """Return the panel with ``warnings``. No cell wraps at 80 columns or more; longer text ends in an ellipsis."""
        status = self._state.status()
        live = self._leases.live()
        newest = self.newest("versions")
        title = f"{self._state.run}   {status.status if status else 'not started'}"
        if self._until is not None:
            left = max(self._until - time.time(), 0)
            title += f"   {int(left // 60)}:{int(left % 60):02d} left"
        return Panel(Group(self._figures(newest), *_heads(newest), self._ratings(), self._services(live),
                           _line(f"bottleneck: {bottleneck(live, newest)}", "yellow"), *self._warnings(newest),
                           *(_line(warning.partition("\n")[0], "bold red") for warning in warnings)),
                     title=title, expand=True)

    def _figures(self, newest: dict[str, Any]) -> Table:
        cells = [
            ("version", str(newest.get("version", "-"))),
            ("hero-steps/s", _number(newest.get("hero_steps_per_second"))),
            ("learned/s", _number(newest.get("consumed_per_second"))),
            ("staleness", _number(newest.get("staleness_median"), 1)),
            ("sample reuse", _number(newest.get("reuse"), 2)),
            ("entropy", _number(newest.get("entropy"), 2)),
            ("expl. variance", _number(newest.get("explained_variance"), 2)),
        ]
        games = self._records["games"][-RECENT_GAMES:]
        for key, name in (("last_hits", "last hits/game"), ("denies", "denies/game")):
            values = [g["statistics"][key] for g in games if key in g.get("statistics", {})]
            cells.append((name, f"{sum(values) / len(values):.1f}" if values else "-"))
        table = Table.grid(padding=(0, 1))
        for _ in range(CELLS_PER_ROW):
            table.add_column(style="dim", width=NAME_WIDTH, no_wrap=True)
            table.add_column(style="bold", width=VALUE_WIDTH, no_wrap=True)
        for start in range(0, len(cells), CELLS_PER_ROW):
            table.add_row(*[text for cell in cells[start:start + CELLS_PER_ROW] for text in cell])
        return table

    def _ratings(self) -> Text:
        rated = [r for r in self._records["ratings"] if r.get("mu") is not None]
        if not rated:
            return _line("TrueSkill      -")
        last = rated[-1]
        text = f"TrueSkill      {last['mu']:.1f} ± {last['sigma']:.1f} {spark([r['mu'] for r in rated])}"
        return _line("   ".join([text, *(f"{name} {score}" for name, score in win_rates(last))]))

    def _services(self, live: list[Instance]) -> Table:
        table = Table(box=None, pad_edge=False)
        table.add_column("service", no_wrap=True)
        table.add_column("id", style="dim", no_wrap=True, max_width=12)
        table.add_column("statistics")  # the only column that may shrink
        for instance in live:
            statistics = "  ".join(f"{k} {_number(v, 2) if isinstance(v, float) else v}"
                                   for k, v in list(instance.stats.items())[:7] if not isinstance(v, dict | list))
            table.add_row(instance.kind, instance.id, _line(statistics))
        return table

    def _warnings(self, newest: dict[str, Any]) -> list[Text]:
        out = []
        if self._last_version_at and time.time() - self._last_version_at > STALE_SECONDS + 5 * newest.get("seconds", 0):
            out.append(_line(f"no new version for {time.time() - self._last_version_at:.0f} s", "bold red"))
        if newest.get("skipped"):
            out.append(_line("gradient steps were skipped: see the optimizer's log", "bold red"))
        return out


def _heads(newest: dict[str, Any]) -> list[Text]:
    """Return a line on the action heads and one on the auxiliary heads, as far as the version's record has them."""
    out = []
    for title, prefix, heads in (("max. entropy", "of_max_entropy_", ACTION_HEADS),
                                 ("loss of chance", "of_chance_", AUXILIARY_HEADS)):
        shares = [f"{name} {100 * newest[prefix + head]:.0f} %" for head, name in heads.items()
                  if newest.get(prefix + head) is not None]
        if shares:
            out.append(_line(f"{title:<{NAME_WIDTH}} {'   '.join(shares)}"))
    return out


def plain(state: RunState, newest: dict[str, Any], rating: dict[str, Any], faults: Iterable[str] = (),
          seconds: float = 0.0) -> str:
    """Return the newest figures as one line of at most `LINE_WIDTH` characters; figures that do not fit are left out.
    ``faults``: names of services that keep failing. ``seconds``: since the start of `five train`.
    """
    status = state.status()
    parts = [f"{int(seconds // 60)}:{int(seconds % 60):02d}"]
    if status is None or status.status != "running":
        parts.append(str(status.status) if status else "not started")
    parts += [f"{name} fails" for name in faults]
    if not newest:
        return "  ".join([*parts, "no version yet"])[:LINE_WIDTH]
    parts += [f"version {newest.get('version', '-')}", f"{_number(newest.get('hero_steps_per_second'))} hero-steps/s"]
    if rating.get("mu") is not None:
        parts.append(f"TrueSkill {rating['mu']:.1f}")
    parts += [f"staleness {_number(newest.get('staleness_median'), 1)}", f"reuse {_number(newest.get('reuse'), 2)}"]
    parts += [f"{name} {100 * share:.0f} %" for name, share in sorted(rating.get("win_rates", {}).items())]
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > LINE_WIDTH:
            break
        line += f"  {part}"
    return line


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
