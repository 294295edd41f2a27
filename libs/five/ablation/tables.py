"""Tables of an ablation with the notes needed to read them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from five.ablation.comparison import AXES, Axis, common_range, mean, mean_between, metric_at
from five.ablation.config import AblationConfig
from five.ablation.effects import effects
from five.ablation.results import AblationResults, EvaluatedVersion, TrialRun
from five.ablation.speedup import AROUND, levels, speedup
from five.agent.ratings import RANDOM

EASY = "scripted-easy"
RATING, HITS, BOTS_OWN = "TrueSkill", "last hits a minute", "the bot's"
HIGH_LOAD = 2.0  # load average for each processor of the machine
OWN_SHARE = 0.9  # least share of its processors that a run uses on an idle machine

Metric = Callable[[EvaluatedVersion], float]
Column = tuple[str, Callable[[TrialRun], float]]

AXIS_NOTES = {
    "versions": "By versions: the effect of equally many gradient steps, at any cost. It is the paper's comparison, "
                "and fair to variants whose versions have equally many steps and samples.",
    "samples": "By samples: the effect of equally many learned hero-steps, each counted once. It is fair where "
               "playing dominates the cost.",
    "wall clock": "By wall clock: the effect of equally many minutes on this machine. Playing and learning share its "
                  "processors, so a variant that plays less has more of them for learning. Other programs take "
                  "processors too. The axis compares configurations on such a machine, not the value of samples."}
LAST = ("The evaluated version is the last archived one of each run, made after these minutes. Only multiples of "
        "store.archive_every are archived, so a variant that makes few versions is evaluated earlier in its time; 1 "
        "archives all versions.")
METHOD = (
    "Means over seeds with their 95 % intervals (Student's t), in all tables; no interval with one seed. All runs "
    "are on one scale, fitted to all games of all evaluated versions, random play at 0. A short run wins nearly all "
    "games against random play and hardly any against the bots. Last hits and net worth (gold at the end of a game) "
    "then distinguish variants that scores do not.")


@dataclass(frozen=True)
class ResultTable:
    """A heading, column names, rows of cells, and notes below."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the table as Markdown with its heading."""
        lines = [f"## {self.title}", "", _line(self.head), "|" + "---|" * len(self.head), *map(_line, self.rows)]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])


def tables(config: AblationConfig, results: AblationResults, processors: int = 0) -> list[ResultTable]:
    """Return all tables. ``processors`` of the machine; 0 if unknown."""
    found = [effects_table(config, results), common_point_table(config, results, "versions"),
             common_point_table(config, results, "samples"), final_table(config, results),
             speedup_table(config, results), training_table(config, results), bots_table(results),
             conditions_table(results, processors)]
    return [table for table in found if table.rows]


def effects_table(config: AblationConfig, results: AblationResults) -> ResultTable:
    """Return the table of what each factor adds to the metrics of the runs' last versions; no rows without factors."""
    runs = list(results.all())
    columns = [(title, _at_last_version(metric)) for title, metric in _metrics(config) if title != BOTS_OWN]
    columns += _scores(config)
    found = [effects(config, runs, metric) for _, metric in columns]
    rows = [[name, *(str(column[name]) for column in found)] for name in config.factors]
    return ResultTable("Effects", ["factor", *(title for title, _ in columns)], rows, [
        f"What the change of each factor adds, with its 95 % interval, after {config.minutes:g} minutes. Every factor "
        "is changed in half of the runs, and all runs estimate every effect. This is a mean over the other factors, "
        "both as they are and changed; once all runs have finished, it contains no interaction of two factors."
        f"{_statistics_note(config)}"])


def common_point_table(config: AblationConfig, results: AblationResults, name: str) -> ResultTable:
    """Return the table of the variants at the last point of an axis that all runs reached; no rows without one."""
    if not _has_common_point(results, name):
        return ResultTable("", [], [])
    axis = AXES[name]
    span = common_range(results.all(), axis)
    columns: list[Column] = []
    for title, metric in _metrics(config):
        columns.append((title, _at_point(axis, span[1], metric)))
        if title in (RATING, HITS):
            columns.append(("on the way", _mean_between(axis, span, metric)))
    unit = "version {:.0f}" if name == "versions" else "{:.2f} million hero-steps"
    start, end = (unit.format(edge if name == "versions" else edge / 1e6) for edge in span)
    return _by_variant(f"At {end}" if name == "versions" else f"At {end} learned from", config, results, columns, [
        AXIS_NOTES[name],
        "This is the last point that all runs reached, interpolated between evaluated versions. On the way: the mean "
        f"from {start} on, the first common point; it depends less on single versions.{_statistics_note(config)}"])


def final_table(config: AblationConfig, results: AblationResults) -> ResultTable:
    """Return the table of the runs' last archived versions: after about equal wall clock, at different versions and
    samples."""
    columns: list[Column] = [("version", lambda run: float(run.last.number)), ("minutes", lambda run: run.last.minutes)]
    columns += [(title, _at_last_version(metric)) for title, metric in _metrics(config)]
    columns += _scores(config)
    notes = [AXIS_NOTES["wall clock"] + _statistics_note(config), LAST, METHOD]
    left_out = [name for name in ("versions", "samples") if not _has_common_point(results, name)]
    if left_out:
        notes.append(f"No table by {' or '.join(left_out)}: the runs' evaluated versions share no point there, or "
                     "their records are lost.")
    return _by_variant(f"After {config.minutes:g} minutes", config, results, columns, notes)


def _has_common_point(results: AblationResults, name: str) -> bool:
    first, last = common_range(results.all(), AXES[name])
    return first <= last  # False for NaN


def speedup_table(config: AblationConfig, results: AblationResults) -> ResultTable:
    """Return the speedup of each variant at ratings that the baseline passes."""
    baseline = results.runs.get(config.baseline, ())
    rows, reasons = [], []
    for level in levels(baseline):
        for variant in [v for v in config.variants if v in results.runs and v != config.baseline]:
            found = [speedup(baseline, results.runs[variant], level, axis) for axis in AXES.values()]
            rows.append([variant, f"{level:.1f}", *map(str, found)])
            reasons += [f"{variant} at {level:.1f} by {name}: {speed.reason}"
                        for name, speed in zip(AXES, found, strict=True) if speed.reason]
    notes = [f"The point of the axis at which {config.baseline} first reaches a TrueSkill, over that of the variant "
             "(Berner et al. 2019, equation 2): above 1 the variant is faster. The levels are half and nine tenths of "
             f"{config.baseline}'s way from its first evaluated versions to its last. In brackets: one deviation by "
             f"the paper's appendix M, from the points for {AROUND:g} less and more, open if a side never reaches them "
             "or was above them before its first evaluation; with several seeds also the 95 % interval over seeds. "
             "never: a run of the variant does not reach the level. -: undetermined."]
    notes += [f"{reason}." for reason in reasons]
    return ResultTable("Speedup", ["variant", "TrueSkill", *(f"by {name}" for name in AXES)], rows, notes)


def statistics_bot(config: AblationConfig) -> str | None:
    """Return the bot whose games give the statistics: the easy one, or the first that does not play randomly."""
    others = [bot for bot in config.evaluation.against if bot != RANDOM]
    return EASY if EASY in others else next(iter(others), None)


def training_table(config: AblationConfig, results: AblationResults) -> ResultTable:
    """Return the table of the runs' training statistics."""
    columns: list[Column] = [
        ("versions", lambda run: float(run.training.version[-1]) if len(run.training.version) else math.nan),
        ("million hero-steps", lambda run: run.training.learned[-1] * 1e-6 if len(run.training.learned) else math.nan),
        ("hero-steps/s", lambda run: run.training.learned_per_second),
        ("buffer full from version", lambda run: float(run.training.full_from or math.nan)),
        ("staleness, median", lambda run: run.training.staleness_median),
        ("staleness, p95", lambda run: run.training.staleness_p95),
        ("sample reuse", lambda run: run.training.reuse),
        ("uses of a sample", lambda run: run.training.uses),
        ("unused %", lambda run: 100 * run.training.unused)]
    return _by_variant("Measured training statistics", config, results, columns, [
        "Hero-steps are those learned from, each counted once. Staleness (in versions) and uses are measured from the "
        "first version that learns from nothing the first policy played: the buffer has then its final length. Sample "
        "reuse is samples used over samples received (Berner et al. 2019, equation 13); uses are those of a sample "
        "that was used at all; unused is the share of samples never used."])


def _metrics(config: AblationConfig) -> list[tuple[str, Metric]]:
    found: list[tuple[str, Metric]] = [(RATING, lambda v: v.mu)]
    bot = statistics_bot(config)
    if bot is not None:
        theirs = "opponent_statistics"
        found += [(HITS, lambda v: v.last_hits(bot)),
                  (BOTS_OWN, lambda v: v.last_hits(bot, theirs)),
                  ("net worth", lambda v: v.net_worth(bot)), (BOTS_OWN, lambda v: v.net_worth(bot, theirs))]
    return found


def _scores(config: AblationConfig) -> list[Column]:
    return [(f"score against {bot}", _at_last_version(partial(EvaluatedVersion.score, opponent=bot)))
            for bot in config.evaluation.against]


def _at_point(axis: Axis, point: float, metric: Metric) -> Callable[[TrialRun], float]:
    return lambda run: metric_at(run, axis, point, metric)


def _statistics_note(config: AblationConfig) -> str:
    bot = statistics_bot(config)
    return f" Last hits and net worth are of games against {bot}." if bot else ""


def _mean_between(axis: Axis, span: tuple[float, float], metric: Metric) -> Callable[[TrialRun], float]:
    return lambda run: mean_between(run, axis, span, metric) if span[0] < span[1] else math.nan


def _at_last_version(metric: Metric) -> Callable[[TrialRun], float]:
    return lambda run: metric(run.last)


def bots_table(results: AblationResults) -> ResultTable:
    """Return the table of the bots' ratings on the common scale."""
    rows = [[name, f"{skill.mu:.1f}", f"{skill.sigma:.1f}" if name != RANDOM else "0, by definition"]
            for name, skill in results.scale.bots().items()]
    scale = results.scale
    source = "estimated from these games" if scale.drawn else "as configured, since none was drawn"
    sigmas = [run.last.sigma for run in results.all()]
    return ResultTable("The scale", ["bot", "TrueSkill", "σ"], rows if scale.games else [], [
        f"Fitted to {scale.games:,} games at once; {100 * scale.draw_probability:.1f} % of games between equals are "
        f"drawn, {source}. σ is the uncertainty of the distance from random play; for the runs' last versions "
        f"it is {mean(sigmas).value:.1f} on average. Part of it is common to all: differences are more certain."])


def conditions_table(results: AblationResults, processors: int) -> ResultTable:
    """Return the table of each run's conditions and commits."""
    rows, busy = [], []
    for run in results.all():
        measured = run.conditions
        load = measured.load if measured else run.evaluation_load
        # The processes of one run alone cause a load of three or four.
        others = measured is None or measured.share < OWN_SHARE
        if load is not None and processors and load > HIGH_LOAD * processors and others:
            busy.append(f"{run.name} ({load:.1f})")
        if measured:
            cells = [", ".join(map(str, measured.processors)), f"{measured.processor_seconds:.0f}",
                     f"{100 * measured.share:.0f} %", f"{measured.load:.1f} in training"]
        else:
            cells = ["-", "-", "-", "-" if load is None else f"{load:.1f} at evaluation"]
        same = run.training_commit == run.commit
        rows.append([run.name, *cells, run.commit if same else f"{run.training_commit}, evaluated {run.commit}"])
    notes = ["Processors: those a run was bound to, with the time its processes used. Load: the machine's load "
             "average; earlier results have it only from their evaluation."]
    if busy:
        notes.append(f"High load: {', '.join(busy)}. The load was more than twice the number of "
                     f"processors ({processors}), and these runs used less than {100 * OWN_SHARE:.0f} % of their own "
                     "processors, as far as known: do not compare their minutes.")
    return ResultTable("Runs", ["run", "processors", "seconds of them", "share", "load", "commit"], rows, notes)


def _by_variant(title: str, config: AblationConfig, results: AblationResults, columns: Sequence[Column],
                notes: Sequence[str]) -> ResultTable:
    rows = []
    for variant in config.variants:
        runs = results.runs.get(variant, ())
        rows.append([variant, str(len(runs)), *(str(mean([metric(run) for run in runs])) for _, metric in columns)])
    return ResultTable(title, ["variant", "seeds", *(name for name, _ in columns)], rows, notes)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
