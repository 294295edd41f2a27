from dataclasses import replace

from cli.plots import draw, gaps, line
from cli.report import RunRecords, headline, plots, render
from rapid.store.series import Record


def records(n: int, **values: float) -> list[Record]:
    return [Record(f"{i}-0", 1000.0 + 10 * i, {k: v * i for k, v in values.items()}) for i in range(n)]


def run(**changes: list[Record]) -> RunRecords:
    parts: dict[str, list[Record]] = {"versions": [], "games": [], "ratings": []} | changes
    return RunRecords("trial", 1000.0, parts["versions"], parts["games"], parts["ratings"], [])


def test_an_empty_run_renders() -> None:
    page = render(run())
    assert page.count("<svg") == len(plots(run()))
    assert "no data yet" in page


def test_a_line_is_in_minutes_and_smoothed_over_the_past_only() -> None:
    curve = line(records(4, a=3.0), 1000.0, "a", lambda r: r["a"], smooth=2)
    assert curve.x.tolist() == [0, 1 / 6, 2 / 6, 0.5]
    assert curve.y.tolist() == [0, 1.5, 4.5, 7.5]


def test_missing_and_infinite_values_are_left_out() -> None:
    rows = [Record("1-0", 1000.0, {"a": 1.0}), Record("2-0", 1001.0, {}), Record("3-0", 1002.0, {"a": float("inf")})]
    assert line(rows, 1000.0, "a", lambda r: r.get("a")).y.tolist() == [1.0]


def test_a_pause_of_the_run_is_marked() -> None:
    rows = records(20, a=1.0)
    later = [Record(r.id, r.at + 300.0, r.values) for r in rows]
    assert len(gaps(rows, 1000.0)) == 0
    ((start, end),) = gaps(rows + later, 1000.0)
    assert end - start > 1.5


def test_names_are_escaped() -> None:
    page = render(RunRecords("<script>", 0.0, [], [], [], [{"at": 1.0, "who": "<b>", "what": "x", "details": "&"}]))
    assert "<script>" not in page and "<b>" not in page.split("<h2 style")[1].split("</table>")[0]


def test_the_headline_shows_rating_and_win_rates() -> None:
    rating = Record("1-0", 1060.0, {"version": 40, "mu": 31.26, "sigma": 1.5, "win_rates": {"random": 0.97},
                                    "win_intervals": {"random": [0.9, 0.99]}})
    head = dict(headline(run(ratings=[rating])))
    assert head["TrueSkill"] == "31.3 ± 1.5"
    assert head["version 40's score against random"] == "97 % (90 to 99)"


def test_a_plot_draws_its_target() -> None:
    assert "target" in draw(plots(run(versions=records(3, reuse=0.5)))[3])


def test_a_surgery_is_marked_on_every_time_line() -> None:
    page = render(replace(run(versions=records(5, reuse=0.5)), surgeries=[(1030.0, "wider (v7)")]))
    assert page.count("wider (v7)") == len(plots(run()))
    assert "upright lines: surgery" in page
