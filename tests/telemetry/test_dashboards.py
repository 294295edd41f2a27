"""The chart's dashboards are generated from the code and readable."""

import re
from typing import Any

import pytest

from tests.telemetry.expressions import DASHBOARDS, ROOT, dashboards, panels
from tools.dashboards.catalogue import BOARDS
from tools.dashboards.frame import Dashboard

NAMES = [board.name for board in BOARDS]


def test_the_files_are_current() -> None:
    """`python -m tools.dashboards` writes them."""
    assert sorted(p.stem for p in DASHBOARDS.glob("*.json")) == sorted(NAMES)
    for board in BOARDS:
        assert (DASHBOARDS / f"{board.name}.json").read_text() == board.json(), f"{board.name}: run the generator"


@pytest.mark.parametrize("board", BOARDS, ids=NAMES)
def test_dashboard_is_complete(board: Dashboard) -> None:
    made = dashboards()[board.name]
    assert made["uid"] == f"five-{board.name}" and "five" in made["tags"]
    assert [v["name"] for v in made["templating"]["list"]] == ["datasource", "namespace", "run"]
    ids = [panel["id"] for panel in made["panels"]]
    assert len(set(ids)) == len(ids)
    titles = [panel["title"] for panel in panels(made)]
    assert titles
    for panel in panels(made):
        assert panel["description"].endswith("."), f"{panel['title']} has no description"
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert 'run=~"$run"' in target["expr"], f"{panel['title']} mixes runs"
            assert 'namespace=~"$namespace"' in target["expr"]


def test_documented_panels_exist() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    part = page[page.index("\n## Read the dashboards"):page.index("\n## Alerts")]
    named = set(re.findall(r"\*\*(.+?)\*\*", part))
    titles = {panel["title"] for made in dashboards().values() for panel in panels(made)}
    assert named and named <= titles, f"no panel is called {sorted(named - titles)}"
    assert {p["title"] for p in panels(dashboards()["data-quality"])} <= named, "a panel is not explained"


def overlaps(made: dict[str, Any]) -> list[tuple[str, str]]:
    places = [(panel["title"], panel["gridPos"]) for panel in made["panels"]]
    return [(a, b) for i, (a, p) in enumerate(places) for b, q in places[i + 1:]
            if p["x"] < q["x"] + q["w"] and q["x"] < p["x"] + p["w"]
            and p["y"] < q["y"] + q["h"] and q["y"] < p["y"] + p["h"]]


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap(name: str) -> None:
    made = dashboards()[name]
    assert overlaps(made) == []
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in made["panels"])


def test_senders_of_segments_are_shown_by_optimizer() -> None:
    found = {panel["title"]: " ".join(t["expr"] for t in panel["targets"])
             for panel in panels(dashboards()["optimizer"])}
    for title, metric, by in (
            ("Optimizers with senders", "five_optimizer_sending_instances", ""),
            ("Senders", "five_optimizer_sending_instances", "instance"),
            ("Segments accepted", "five_optimizer_received_segments_total", "instance"),
            ("Segments not accepted", "five_rollout_dropped_segments_total", "instance, verdict"),
            ("Segments unsent, by rollout", "five_rollout_unsent_segments", "instance"),
            ("Streams of segments that failed", "five_rpc_answered_calls_total", "instance, code")):
        assert metric in found[title] and (not by or f"by ({by})" in found[title]), title


def test_a_process_out_of_reach_has_a_line_at_zero() -> None:
    """A failed scrape ends all series of the target except `up`."""
    (scrapes,) = [panel for panel in panels(dashboards()["system"]) if panel["title"] == "Scrapes"]
    (target,) = scrapes["targets"]
    assert re.fullmatch(r"last_over_time\(five_process_started_info\{.*\}\[1h\]\) \* on \(job, instance\) "
                        r"group_left \(\) up", target["expr"])


def test_staleness_and_reuse_come_first_with_their_targets() -> None:
    assert NAMES[0] == "data-quality"
    staleness, reuse = panels(dashboards()["data-quality"])[:2]
    assert (staleness["title"], reuse["title"]) == ("Staleness", "Sample reuse")
    for panel in (staleness, reuse):
        assert panel["gridPos"]["y"] == 1
        assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] in ("area", "line+area")
    steps = staleness["fieldConfig"]["defaults"]["thresholds"]["steps"]
    # Green from zero to one version (Berner et al. 2019, section 4.1), then nothing.
    assert [(s["value"], s["color"]) for s in steps[:2]] == [(None, "green"), (1, "transparent")]
    assert any(t["expr"].startswith("histogram_quantile(0.95") for t in staleness["targets"])
    target = next(t for t in reuse["targets"] if t["legendFormat"] == "target")
    assert "five_optimizer_sample_reuse_target_ratio" in target["expr"]
    bands = [s["value"] for s in reuse["fieldConfig"]["defaults"]["thresholds"]["steps"] if s["color"] == "green"]
    assert bands == [0.9]
