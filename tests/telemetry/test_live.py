"""A real run under a real Prometheus: every panel has data, and no alert is false."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest

from five.protos.v1 import inference_pb2, inference_pb2_grpc
from tests import waiting
from tests.e2e.running import Run, eventually
from tests.e2e.test_anneal import begun
from tests.telemetry.expressions import FOREIGN, filled, of_dashboards, rules, used
from tests.telemetry.prometheus import Watch
from tools.dashboards.catalogue import BOARDS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

KINDS = {"controller", "dota_env", "evaluator", "inference", "opponents", "optimizer", "play", "rollout"}
# A short run: half of the games against past versions, remote games, a rating every few games, and an anneal in half
# of the games.
OVERRIDES = ("services.rollout.environment=remote", "league.past_opponent_share=0.5",
             "services.evaluator.cpu_share=0.5", "services.evaluator.games=8",
             "rating.anchors=[random, scripted]", "rating.games_per_anchor_pair=2")
# Queries without data, by row.
ABSENT = {
    "system: Redis: Memory B",  # the embedded Redis has no limit
    "game: Games: Radiant wins (number) A",  # no game of 30 seconds has a winner
    "optimizer: Senders: Streams of segments that failed A",  # none fails
    # No person plays in this run.
    "game: Games that people play: Agents' answers A", "game: Games that people play: Agents' answers B",
    "game: Games: Results from the middle A",  # no game of this run begins in the middle
    # `five train` starts no server of dotaservice's protocol.
    *(f"game: Games of dotaservice's clients: {title}" for title in (
        "Actions A", "Actions B", "Games of clients A", "Games of clients B", "Games of clients C", "Observations A",
        "Observations B", "Time of a step A", "Time of a step B", "World states A"))}
# Alerts that are true for a run of a minute with two gradient steps per version.
PLAUSIBLE = {"FiveStale", "FiveReuseHigh", "FiveReuseLow", "FiveSegmentsRefused", "FiveOptimizersWaiting",
             "FiveBufferStarving"}


def cluster_rows() -> set[str]:
    """Return the beginnings of the names of queries that need a cluster."""
    return {f"{board.name}: {row.title}: " for board in BOARDS for row in board.rows if row.cluster}


def expressions(run: str) -> dict[str, str]:
    """Return every query of every panel that works for a local run."""
    cluster = tuple(cluster_rows())
    return {where: filled(text, run, interval="20s") for where, text in of_dashboards()
            if not where.startswith(cluster)}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


@pytest.fixture
def watch(prometheus: str, run: Run, tmp_path: Path) -> Iterator[Watch]:
    run.start_new(*OVERRIDES)
    run.wait_version(1)
    begun(run, name="older-patch", overrides={"patch": "7.19"}, versions=1000)
    assert run.rest("PUT", "anneal/share", json={"share": 0.5}).status_code == 200
    watch = Watch(prometheus, run, tmp_path)
    yield watch
    watch.end()


def call_without_token(run: Run) -> None:
    """Make a refused call, for the panel of failed calls."""
    with grpc.insecure_channel(run.config.services.inference.addresses[0]) as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.RpcError) as refused:
            stub.GetModel(inference_pb2.GetModelRequest(), timeout=60)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_dashboards_and_alerts_of_a_real_run(run: Run, watch: Watch, promtool: str) -> None:
    pages = eventually(lambda: (found := watch.follow()).keys() >= KINDS and found, 180, "all services live")
    call_without_token(run)
    for kind, address in pages.items():
        text = httpx.get(f"http://{address}/metrics", timeout=60).content
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
        assert checked.returncode == 0, f"{kind}: {(checked.stdout + checked.stderr).decode()}"

    wanted = expressions(run.folder.name)
    assert len(wanted) > 150 and wanted.keys() >= ABSENT
    missing = watch.missing({name: text for name, text in wanted.items() if name not in ABSENT}, 300)
    assert not missing, f"without data: {sorted(missing)}\n{run.logs()}"
    assert not watch.values(f'five_process_started_info{{run!="{run.folder.name}"}}')

    # Every metric of the alerts exists, so no alert is silent for lack of data.
    asked = {u.metric for rule in rules() for u in used(rule["expr"])}
    asked -= {metric for metric in asked if "autoscaler" in metric} | (FOREIGN.keys() - {"up"})
    assert watch.missing({metric: f"count({metric})" for metric in asked}, 120) == []
    broken = [rule for group in watch.ask("rules")["groups"] for rule in group["rules"] if rule.get("lastError")]
    assert broken == []

    def false_alerts() -> set[str]:
        alerts = watch.ask("alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts
                if a["state"] == "firing" or a["labels"]["alertname"] not in PLAUSIBLE}

    # A page that was late once makes an alert pending, which then resolves; a false one stays.
    waiting.eventually(lambda: not false_alerts(), 120, details=lambda: str(sorted(false_alerts())))
