"""Results of an ablation as Markdown, and as one self-contained HTML page of tables and plots."""

import html
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from five.ablation.comparison import AXES, Curve, curve, version_curve
from five.ablation.config import AblationConfig
from five.ablation.plots import Plot, PlotLine, render_svg
from five.ablation.results import AblationResults, EvaluatedVersion
from five.ablation.tables import AXIS_NOTES, ResultTable, statistics_bot, tables

UNITS = {"versions": ("versions", 1.0), "samples": ("million hero-steps learned from, each counted once", 1e-6),
         "wall clock": ("minutes", 1.0)}
BANDS_FROM = 3  # seeds; the band of two seeds is more than three times as wide
BAND = f"Means over seeds; the band is their 95 % interval, drawn from {BANDS_FROM} seeds on."


def plots(config: AblationConfig, results: AblationResults) -> list[Plot]:
    """Return the plots: rating over each axis, statistics against a scripted bot, and staleness over versions."""
    found = [Plot(f"TrueSkill over {name}", "points", _lines(results, name, lambda v: v.mu), (0.0, "random play"),
                  f"{BAND} {AXIS_NOTES[name]}", UNITS[name][0]) for name in AXES]
    bot = statistics_bot(config)
    if bot is not None:
        metrics: list[tuple[str, str, Callable[[EvaluatedVersion], float]]] = [
            (f"Last hits a minute against {bot}", "a minute", lambda v: v.last_hits(bot)),
            (f"Net worth against {bot}", "gold", lambda v: v.net_worth(bot))]
        found += [Plot(title, unit, _lines(results, "versions", metric), note=BAND, x_unit="versions")
                  for title, unit, metric in metrics]
    staleness = [_line(name, curve([(run.training.version.tolist(), run.training.staleness.tolist()) for run in runs]))
                 for name, runs in results.runs.items()]
    found.append(Plot("Staleness of the learned samples", "versions", staleness, x_unit="versions",
                      note=f"Mean of each version. {BAND} The buffer fills at the beginning."))
    return found


def text(config: AblationConfig, results: AblationResults, about: Mapping[str, Any]) -> str:
    """Return the tables as Markdown. ``about``: the description in the ablation's folder."""
    return render_text(config.name, config.question, _status(config, results, about), _tables(config, results, about))


def render(config: AblationConfig, results: AblationResults, about: Mapping[str, Any]) -> str:
    """Return the page as HTML. ``about``: the description in the ablation's folder."""
    return render_html(config.name, config.question, _status(config, results, about), _tables(config, results, about),
                       plots(config, results))


def render_text(name: str, question: str, status: str, found: Sequence[ResultTable]) -> str:
    """Return tables as Markdown below a heading."""
    return "\n\n".join([*filter(None, [f"# {name}", question, status]), *(table.markdown() for table in found)]) + "\n"


def render_html(name: str, question: str, status: str, found: Sequence[ResultTable], drawn: Sequence[Plot]) -> str:
    """Return a page with the first table, the plots and the other tables."""
    cards = "".join(f"<div><h2>{html.escape(p.title)}</h2>{render_svg(p)}<p>{html.escape(p.note)}</p></div>"
                    for p in drawn)
    parts = [_section(table) for table in found]
    return (f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(name)}</title>"
            "<style>body{font:15px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1200px;padding:0 16px}"
            "table{border-collapse:collapse;font-size:13px}td,th{padding:4px 10px;border-bottom:1px solid #ddd;"
            "text-align:left}section{overflow-x:auto}svg{width:100%;height:auto}.grid{display:grid;gap:16px;"
            "grid-template-columns:repeat(auto-fill,minmax(420px,1fr))}p{color:#666;font-size:12px;max-width:100ch}"
            f"</style></head><body><h1>{html.escape(name)}</h1>{html.escape(question)}"
            f"<p>{html.escape(status)}</p>{''.join(parts[:1])}<div class='grid'>{cards}</div>"
            f"{''.join(parts[1:])}</body></html>")


def _tables(config: AblationConfig, results: AblationResults, about: Mapping[str, Any]) -> list[ResultTable]:
    return tables(config, results, int(about.get("machine", {}).get("cores", 0)))


def _section(table: ResultTable) -> str:
    rows = "".join("<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
                   for tag, row in [("th", table.head), *(("td", row) for row in table.rows)])
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
    return f"<section><h2>{html.escape(table.title)}</h2><table>{rows}</table>{notes}</section>"


def _status(config: AblationConfig, results: AblationResults, about: Mapping[str, Any]) -> str:
    done, total = sum(1 for _ in results.all()), len(config.variants) * len(config.seeds)
    machine = about.get("machine", {})
    parallel = f", {config.parallel_runs} in parallel" if config.parallel_runs > 1 else ""
    commits = ", ".join(f"{commit} ({runs} runs)" if runs > 1 else f"{commit} (1 run)"
                        for commit, runs in results.commits().items())
    return (f"{done} of {total} runs of {config.minutes:g} minutes{parallel}; commits: {commits or 'none yet'}; "
            f"{machine.get('cores', '?')} processors of {machine.get('cpu', 'an unknown kind')}; "
            f"made {time.strftime('%Y-%m-%d %H:%M')}")


def _lines(results: AblationResults, axis: str, metric: Callable[[EvaluatedVersion], float]) -> list[PlotLine]:
    return [_line(variant, version_curve(runs, AXES[axis], metric), UNITS[axis][1])
            for variant, runs in results.runs.items()]


def _line(variant: str, c: Curve, scale: float = 1.0) -> PlotLine:
    if c.seeds < BANDS_FROM:
        return PlotLine(variant, c.x * scale, c.y)
    return PlotLine(variant, c.x * scale, c.y, c.low, c.high)
