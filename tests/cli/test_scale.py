"""Capacity tables and simulation: docs/scale.md is current, and the inputs match the measured figures."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from five.capacity import cluster_sizes, connections, inputs
from five.capacity.cluster_sizes import Cluster, clusters
from five.capacity.feed import worst_feed
from five.capacity.links import intake_seconds, largest_inference_pool, links, nearest, readers
from five.capacity.overheads import overheads
from five.capacity.past_versions import PastPool, past_pool
from five.capacity.simulation import ScenarioResult, Simulation, flow, rules_of
from five.cli.main import main
from five.cli.scale import links_table, markdown, replace_tables, scenarios, sizes_table
from rapid.store.connection import MAX_CONNECTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale.md"


@pytest.fixture(scope="module")
def found() -> dict[str, Cluster]:
    return {c.name: c for c in clusters()}


@pytest.fixture(scope="module")
def outcomes(found: dict[str, Cluster]) -> list[tuple[str, ScenarioResult]]:
    return [(f"{name}: {what}", o) for name in ("one node", "512 GPUs") for what, o in scenarios(found[name])]


@pytest.mark.runs
def test_scale_page_is_current() -> None:
    page = PAGE.read_text()
    assert replace_tables(page, markdown()) == page, "run `five scale --into docs/scale.md`"
    with pytest.raises(ValueError, match="lacks the markers"):
        replace_tables("", "body")


def test_page_without_markers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("five.cli.scale.markdown", lambda: "tables")
    page = tmp_path / "page.md"
    page.write_text("text")
    assert main(["scale", "--into", str(page)]) == 2 and page.read_text() == "text"
    assert capsys.readouterr().err.startswith(f"five scale: {page}: the page lacks the markers <!-- ")


def test_scale_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "--json"]) == 0
    titles = [table["title"] for table in json.loads(capsys.readouterr().out)]
    assert "The autoscaler, simulated" in titles and "Links, 512 GPUs" in titles


def test_bench_inputs_match_the_benchmarks_page() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    # When two tables have the same row, the later table is the newer.
    rows = dict(re.findall(r"^\| `([a-z0-9_.]+)`[^|]*\| ([0-9.,]+) ", page, re.MULTILINE))
    for figure in inputs.FIGURES:
        if figure.source == "bench":
            name = figure.about.split("`")[1]
            value = float(rows[name].replace(",", ""))
            assert value == pytest.approx(figure.value, rel=0.005), f"{name}: update libs/five/capacity/inputs.py"


def test_speed_inputs_match_the_speed_page() -> None:
    page = (ROOT / "docs" / "speed.md").read_text()
    rows = {name: (float(small), float(large)) for name, small, large in re.findall(
        r"^\| ([^|]+) \| ([0-9.]+)[^|]* \| ([0-9.]+)[^|]* \|$", page, re.MULTILINE)}
    taken, kept = rows["message parsed and checked"], rows["put into the buffer"]
    assert inputs.INTAKE_SMALL.value == pytest.approx((taken[0] + kept[0]) * 1e-6)
    assert inputs.INTAKE_LARGE.value == pytest.approx((taken[1] + kept[1]) * 1e-3)
    laptop, _, _, papers = clusters()
    kilobytes, megabytes = rows["bytes of a segment (16 samples; `laptop-1v1`: 8)"]
    assert laptop.segment_bytes == pytest.approx(kilobytes * 1e3, rel=0.02)
    assert papers.segment_bytes == pytest.approx(megabytes * 1e6, rel=0.02)
    assert f"has {inputs.SEGMENT_STEP_5V5.value:,.0f} bytes" in page
    assert {f.source for f in inputs.FIGURES} == {"bench", "speed", "here", "paper", "assumed"}


def test_version_sizes_match_the_presets() -> None:
    facts = yaml.safe_load((ROOT / "charts" / "files" / "presets.yaml").read_text())
    for preset, values in (("laptop-1v1", cluster_sizes.LAPTOP_PARAMETERS), ("gpu-node", cluster_sizes.NODE_PARAMETERS),
                           ("rerun", cluster_sizes.RERUN_PARAMETERS)):
        assert facts[preset]["parameter_bytes"] == values * 4


def test_largest_cluster_matches_the_paper(found: dict[str, Cluster]) -> None:
    c = found["512 GPUs"]
    assert (c.all_games, c.optimizers, c.inference) == (57_600, 512, 512)
    # Figure 2: 1,920 timesteps on each of 512 GPUs every 2 seconds, 32 steps from version to version.
    assert c.learned_steps == pytest.approx(512 * 1920 / 2, rel=0.02)
    assert c.version_seconds == pytest.approx(64, rel=0.02)
    # Its workers made 256 timesteps a minute: that is what 512 forward GPUs answer, and games wait for them.
    assert flow(c, c.rollouts, c.inference).rate == pytest.approx(57_600 * 2 * 256 / 60, rel=0.02)


def test_one_redis_core_limits_512_readers(found: dict[str, Cluster]) -> None:
    c = found["512 GPUs"]
    worst = nearest(links(c, bfloat16=False))
    assert worst.name == "Redis -> inference, versions" and worst.used is not None and worst.used > 1
    half = next(link for link in links(c) if link.name == worst.name)  # the preset's value
    assert half.used is not None and 0.5 < half.used < 1
    assert largest_inference_pool(c, False) < 512 < largest_inference_pool(c, True)
    assert not [link for link in links(found["64 GPUs"]) if link.used is not None and link.used > 0.5]


def test_node_cache_reduces_readers_to_an_eighth(found: dict[str, Cluster]) -> None:
    c = found["512 GPUs"]
    shared = replace(c, config=c.config.model_copy(update={
        "store": c.config.store.model_copy(update={"node_folder": "/run/versions"})}))
    each, once = (next(link for link in links(x) if link.name == "Redis -> inference, versions") for x in (c, shared))
    assert each.used is not None and once.used == pytest.approx(each.used / 8)
    assert readers(shared) == c.inference / 8 == 64


def test_past_versions_fill_batches_and_fit_in_memory(found: dict[str, Cluster]) -> None:
    c = found["512 GPUs"]
    pool, apart = past_pool(c), PastPool(c, 0)
    # A tenth of the team-steps, at what the newest's cost; a version a group would take more servers than there are.
    assert pool.steps == pytest.approx(c.played_steps / 10) and 45 < pool.rows < 75
    assert pool.servers == pytest.approx(c.inference / 10, rel=0.2)
    assert apart.rows < 4 and apart.servers > 5 * pool.servers
    assert pool.version_bytes == c.parameter_bytes / 2
    assert pool.bytes_each < c.config.services.inference.past_mebibytes << 20
    assert all(past_pool(x).bytes_each < x.config.services.inference.past_mebibytes << 20 for x in found.values())


def test_flow_grows_with_pods_until_inference_limits(found: dict[str, Cluster]) -> None:
    c = found["512 GPUs"]
    rates = [flow(c, pods, 512) for pods in (10, 100, 400, 800, 1800, 3600)]
    most = c.forward.most * 512 / past_pool(c).relative_cost
    assert all(a.rate <= b.rate and a.queue <= b.queue for a, b in itertools.pairwise(rates))
    assert rates[-1].rate == pytest.approx(most) and rates[-1].queue > 2 * rates[-2].queue
    assert flow(c, 1800, 512, most / 2).rate == pytest.approx(most / 2)
    assert flow(c, 0, 512).rate == flow(c, 5, 0).rate == 0.0


def test_every_scenario_settles_at_full_speed(outcomes: list[tuple[str, ScenarioResult]]) -> None:
    for name, o in outcomes:
        assert o.speed >= 0.95 and o.recovered is not None, name
        assert o.turns <= 2 and o.settled < 3 * 3600 and o.overshoot <= 0.5, name


@pytest.mark.parametrize(("name", "rollouts"), [("64 GPUs", 22), ("512 GPUs", 180)])
def test_start_with_a_tenth_of_the_rollouts_feeds_every_optimizer(found: dict[str, Cluster], name: str, rollouts: int
                                                                  ) -> None:
    c = found[name]
    run = Simulation(c, rules_of(c), {"rollout": rollouts, "inference": c.inference // 4})
    run.advance(2 * 3600)
    assert min(speed for at, _, _, speed in run.trace if at > 600) > 0.1
    assert run.trace[-1][3] > 0.9


def test_unfed_optimizer_stops_the_group(found: dict[str, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    c = found["64 GPUs"]
    monkeypatch.setattr("five.capacity.feed.assigned_ranks", lambda ordinal, *_: [ordinal % 63])
    worst_feed.cache_clear()
    run = Simulation(c, rules_of(c), {"rollout": 225, "inference": 64})
    run.advance(600)
    worst_feed.cache_clear()
    assert all(speed == 0 for *_, speed in run.trace)


def test_failed_pods_are_not_requested_twice(outcomes: list[tuple[str, ScenarioResult]]) -> None:
    for name, o in outcomes:
        if "fail for" in name:
            assert o.before[0] == o.after[0] and o.overshoot == 0 and o.recovered is not None
            # The remaining one of two rollouts does more than half: it waits less for inference.
            assert o.slowest < (0.85 if o.before[0] == 2 else 0.7) and o.recovered < 900


def test_redis_outage_scales_nothing(outcomes: list[tuple[str, ScenarioResult]]) -> None:
    held = [(name, o) for name, o in outcomes if "Redis is unavailable" in name]
    assert held
    for name, o in held:
        assert o.slowest == 0 and o.before == o.after and o.turns == 0, name
        assert o.recovered is not None and 600 <= o.recovered < 720, name


def test_overheads_of_the_paper_size_cluster(found: dict[str, Cluster]) -> None:
    papers = overheads(found["512 GPUs"])
    assert papers.leases == 1800 + 512 + 512 + 3 and 0.05 < papers.leases_share < 0.2
    # Rank 0 has published a version long before the next one is made: learning does not hold for it.
    assert all(overheads(c).publishing_share < 0.2 for c in found.values())
    # A checkpoint takes most of a version, and nothing waits for it: versions go on being published meanwhile.
    assert papers.checkpoint == pytest.approx(4 * found["512 GPUs"].parameter_bytes / 50e6)
    assert 0.7 < papers.versions < 0.9
    assert papers.lost == pytest.approx(10.8 * found["512 GPUs"].version_seconds, rel=0.02)
    # Where one takes longer than the versions between two, the next begins when it is whole.
    slow = overheads(replace(found["512 GPUs"], parameter_bytes=found["512 GPUs"].parameter_bytes * 20))
    assert slow.versions > 10 and slow.lost == pytest.approx(2 * slow.checkpoint + slow.publishing)


def test_nearest_link_has_the_largest_used_share(found: dict[str, Cluster]) -> None:
    for c in found.values():
        table = [float(row[4].rstrip("%")) for row in links_table(c).rows if row[4] != "-"]
        (shown,) = [row for row in sizes_table([c]).rows if row[0] == "used share of that limit"]
        assert float(shown[1].rstrip("%")) == max(table), c.name
        assert max(table) < 100, c.name  # no preset begins beyond what it carries


def test_segment_cost_is_stream_plus_measured_intake() -> None:
    assert intake_seconds(109e3) == pytest.approx(109e3 / 830e6 + 78e-6)
    assert intake_seconds(4.36e6) == pytest.approx(4.36e6 / 830e6 + 150e-6)


def test_connections_fit_and_match_the_charts_sum(found: dict[str, Cluster]) -> None:
    for c in found.values():
        assert connections.of_state(c) <= connections.MAX_CLIENTS, c.name
    said = (ROOT / "charts" / "templates" / "_validate.tpl").read_text()
    inference, rollout = MAX_CONNECTIONS["inference"], MAX_CONNECTIONS["rollout"]
    assert rollout == 1 and f"add $rollouts (mul {inference} $servers) (mul {connections.OPTIMIZER} $count) " \
        f"{connections.OTHERS}" in said
    values = yaml.safe_load((ROOT / "charts" / "values.yaml").read_text())
    assert values["redis"]["state"]["maxclients"] == connections.MAX_CLIENTS


def test_doubled_optimizers_double_the_pods(
        outcomes: list[tuple[str, ScenarioResult]]) -> None:
    (o,) = [o for name, o in outcomes if "double" in name and "512" in name]
    rollouts, inference = (after / before for after, before in zip(o.after, o.before, strict=True))
    assert o.speed > 0.99 and 1.6 < inference < 2.2
    # Longer queues of more games make up for the smaller batches of few servers.
    assert rollouts == pytest.approx(2, rel=0.1) or (inference < 1.9 and 2 < rollouts < 3)
