"""Tables and page of made-up results."""

import math
import re
from typing import Any

import numpy as np
import pytest

from five.ablation import page
from five.ablation.conditions import Conditions
from five.ablation.config import AblationConfig
from five.ablation.rating_scale import PairCounts
from five.ablation.results import AblationResults, EvaluatedVersion, TrialRun, assemble
from five.ablation.tables import ResultTable, tables
from five.ablation.training_records import TrainingStatistics

BOTS = ["random", "scripted-easy", "scripted"]
CONFIG = AblationConfig.model_validate({
    "name": "queues", "question": "<b>why</b>", "minutes": 10, "seeds": [1, 2, 3], "parallel_runs": 2,
    "variants": {"none": {}, "queue-4": {"buffer.sampling": "oldest"}}, "evaluation": {"against": BOTS}})
ABOUT = {"commit": "first", "machine": {"cores": 2, "cpu": "x"}}


def evaluated(version: int, wins: dict[str, int], last_hits: float = 6.0, games: int = 40) -> dict[str, Any]:
    """Return a stored evaluation with a wrong rating; games of three minutes, none drawn."""
    return {"version": version, "minutes": version / 10, "hero_steps": 1e9, "mu": 99.0, "sigma": 9.0, "matches": {
        bot: {"won": wins.get(bot, 0), "drawn": 0, "lost": games - wins.get(bot, 0), "score": wins.get(bot, 0) / games,
              "game_seconds": 180.0, "statistics": {"last_hits": last_hits, "net_worth": 1500.0},
              "opponent_statistics": {"last_hits": 12.0, "net_worth": 2500.0}} for bot in BOTS}}


def result(variant: str, seed: int, last: int = 100, best: int = 8, **more: Any) -> dict[str, Any]:
    """Return a result of two evaluated versions, of which the second wins ``best`` of 40 games against the easy bot."""
    return {"variant": variant, "seed": seed, "commit": "abc", "machine": {"load": 1.5}, **more, "evaluated": [
        evaluated(20, {"random": 30, "scripted-easy": 1}),
        evaluated(last, {"random": 39, "scripted-easy": best}, 18.0)]}


def records(last: int, uses: int = 1) -> list[dict[str, Any]]:
    """Return the records of a run without a queue: 1,000 hero-steps a version, each sample used ``uses`` times."""
    return [{"version": v, "seconds": 5.0, "samples": 100, "reuse": float(uses), "consumed_per_second": 200.0,
             "staleness_mean": 0.0, "staleness_histogram": [1000], "dropped": {"used": 100 * v // uses, "unused": 0}}
            for v in range(1, last + 1)]


def found(outcome: AblationResults, title: str, processors: int = 2) -> ResultTable:
    """Return the table whose title starts with ``title``."""
    return next(table for table in tables(CONFIG, outcome, processors) if table.title.startswith(title))


def cells(table: ResultTable, row: str) -> dict[str, str]:
    """Return a row's cells by column name; the last one of columns with the same name."""
    return next(dict(zip(table.head, r, strict=True)) for r in table.rows if r[0] == row)


def test_ratings_are_fitted_to_all_games() -> None:
    anchors = [PairCounts("random", "scripted-easy", 0, 0, 80)]
    outcome = assemble(CONFIG, [(result("none", 1), records(100)), (result("queue-4", 1), records(100))], anchors)
    first, last = outcome.runs["none"][0].versions
    assert 0 < first.mu < last.mu < outcome.scale.skills["scripted-easy"].mu < 40 and last.sigma < 5
    assert outcome.scale.games == 2 * 2 * 3 * 40 + 80
    assert last.mu == pytest.approx(outcome.runs["queue-4"][0].last.mu)


def test_samples_count_once() -> None:
    outcome = assemble(CONFIG, [(result("none", 1), records(100)), (result("queue-4", 1), records(100, uses=2))])
    assert [v.samples for v in outcome.runs["none"][0].versions] == pytest.approx([20_000, 100_000])
    assert [v.samples for v in outcome.runs["queue-4"][0].versions] == pytest.approx([10_000, 50_000])


def test_order_of_tables() -> None:
    """The first table compares the runs at the last version that all of them reached."""
    outcome = assemble(CONFIG, [(result("none", 1, last=100), records(100)),
                                (result("queue-4", 1, last=60), records(60, uses=2))])
    titles = [table.title for table in tables(CONFIG, outcome)]
    assert titles[:4] == ["At version 60", "At 0.03 million hero-steps learned from", "After 10 minutes", "Speedup"]
    assert titles[4:] == ["Measured training statistics", "The scale", "Runs"]
    at, after = found(outcome, "At version"), found(outcome, "After")
    assert at.head == ["variant", "seeds", "TrueSkill", "on the way", "last hits a minute", "on the way", "the bot's",
                       "net worth", "the bot's"]
    assert at.rows[0][4:6] == ["4", "3"]  # from 2 at version 20 to 6 at version 100
    assert at.rows[1][4:6] == ["6", "4"]  # from 2 at version 20 to 6 at version 60
    assert cells(after, "none")["last hits a minute"] == cells(after, "queue-4")["last hits a minute"] == "6"
    assert cells(after, "none")["version"] == "100" and cells(after, "queue-4")["version"] == "60"
    # The runs' minutes are equal, but the last archived version of a slower one is older.
    assert cells(after, "none")["minutes"] == "10" and cells(after, "queue-4")["minutes"] == "6"
    assert found(outcome, "Speedup").head[2:] == ["by versions", "by samples", "by wall clock"]


def test_last_hits_and_net_worth_are_plotted() -> None:
    outcome = assemble(CONFIG, [(result("none", s, best=0), records(100)) for s in (1, 2)])
    table = found(outcome, "After")
    assert table.rows[0][5:9] == ["6 ± 0", "4 ± 0", "1,500 ± 0", "2,500 ± 0"]
    assert cells(table, "none")["score against scripted-easy"] == "0 ± 0"
    assert [plot.title for plot in page.plots(CONFIG, outcome)] == [
        "TrueSkill over versions", "TrueSkill over samples", "TrueSkill over wall clock",
        "Last hits a minute against scripted-easy", "Net worth against scripted-easy",
        "Staleness of the learned samples"]


def test_undetermined_speedup_names_the_reason() -> None:
    """The first evaluated version of the variant is as strong as the baseline's last one."""
    strong = result("queue-4", 1)
    strong["evaluated"][0] = evaluated(20, {"random": 39, "scripted-easy": 9})
    table = found(assemble(CONFIG, [(result("none", 1), records(100)), (strong, records(100))]), "Speedup")
    assert [row[2:] for row in table.rows] == [["-"] * 3] * 2
    told = "\n".join(table.notes)
    reason = r"queue-4 at [\d.]+ by versions: the first evaluated version is already above it.* in queue-4-seed1"
    assert re.search(reason, told)


def test_missing_records_leave_samples_empty() -> None:
    outcome = assemble(CONFIG, [(result("none", 1), []), (result("queue-4", 1), records(100))])
    assert not [table for table in tables(CONFIG, outcome) if "million" in table.title]
    assert cells(found(outcome, "Measured training"), "none")["sample reuse"] == "-"
    assert cells(found(outcome, "Measured training"), "queue-4")["sample reuse"] == "1"
    assert "<svg" in page.render(CONFIG, outcome, ABOUT)


def test_runs_without_a_common_point_have_no_table_of_one() -> None:
    """Runs with one evaluated version each share no point, so the comparisons by versions and samples are left out."""
    ends = [result("none", 1, last=100), result("queue-4", 1, last=60)]
    for one in ends:
        del one["evaluated"][0]
    outcome = assemble(CONFIG, [(ends[0], records(100)), (ends[1], records(60))])
    titles = [table.title for table in tables(CONFIG, outcome)]
    notes = "".join(found(outcome, "After").notes)
    assert titles[0] == "After 10 minutes" and "Student's t" in notes and "No table by versions or samples:" in notes


def test_training_statistics_are_means_over_seeds() -> None:
    outcome = assemble(CONFIG, [(result("none", s), records(100, uses=s)) for s in (1, 2, 3)])
    row = cells(found(outcome, "Measured training"), "none")
    assert row["uses of a sample"] == f"2 ± {4.303 / math.sqrt(3):.1f}" and row["staleness, median"] == "0 ± 0"
    assert row["versions"] == "100 ± 0" and row["seeds"] == "3"


def test_commits_and_high_loads_are_named() -> None:
    kept = Conditions([1], 540.0, 600.0, 1.4, 0.9, "old").as_dict()
    outcome = assemble(CONFIG, [(result("none", 1), []), (result("none", 2, machine={"load": 13.9}), []),
                                (result("queue-4", 1, conditions=kept), []),
                                (result("queue-4", 2, conditions={**kept, "load": 4.1, "processor_seconds": 480.0},
                                        commit="old"), []),
                                (result("queue-4", 3, conditions={**kept, "load": 6.5}, commit="old"), [])])
    assert outcome.commits() == {"abc": 3, "old": 3}
    assert "commits: abc (3 runs), old (3 runs)" in page.text(CONFIG, outcome, ABOUT)
    table = found(outcome, "Runs")
    assert [row[1:] for row in table.rows] == [
        ["-", "-", "-", "1.5 at evaluation", "abc"], ["-", "-", "-", "13.9 at evaluation", "abc"],
        ["1", "540", "90 %", "1.4 in training", "old, evaluated abc"], ["1", "480", "80 %", "4.1 in training", "old"],
        ["1", "540", "90 %", "6.5 in training", "old"]]
    assert table.notes[-1].startswith("High load: none-seed2 (13.9), queue-4-seed2 (4.1).")
    assert not any("High load" in note for note in found(outcome, "Runs", processors=8).notes)


def test_page_is_self_contained_and_escaped() -> None:
    outcome = assemble(CONFIG, [(result("none", s), records(100)) for s in (1, 2, 3)])
    text = page.render(CONFIG, outcome, ABOUT)
    assert "3 of 6 runs" in text and "<b>why" not in text and text.count("<svg") == 6
    assert "<td>queue-4</td><td>0</td><td>-</td>" in text
    assert not re.search(r"<(script|link|img|iframe)|src=|@import|href=['\"](?!#)", text)
    assert text.index("over versions") < text.index("over samples") < text.index("over wall clock")


def test_band_needs_three_seeds() -> None:
    training = TrainingStatistics(np.array([1.0, 2.0]), np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    two, three = ([TrialRun("none", s, [EvaluatedVersion(10, 1.0, 1.0, 5.0 + s, 1.0),
                                        EvaluatedVersion(20, 2.0, 2.0, 9.0 + s, 1.0)], training) for s in range(n)]
                  for n in (2, 3))
    scale = assemble(CONFIG, []).scale
    no_play = AblationConfig.model_validate({"name": "a", "variants": {"none": {}},
                                             "evaluation": {"against": ["random"]}})
    for runs, drawn in ((two, False), (three, True)):
        plots = page.plots(no_play, AblationResults({"none": runs}, scale))
        assert len(plots) == 4 and all((plot.lines[0].low is not None) == drawn for plot in plots)


def test_page_without_results() -> None:
    outcome = assemble(CONFIG, [])
    text = page.text(CONFIG, outcome, ABOUT)
    assert "0 of 6 runs" in text and "commits: none yet" in text
    assert page.render(CONFIG, outcome, ABOUT).startswith("<!doctype html>")
