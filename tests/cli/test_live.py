from pathlib import Path

import redis
from rich.console import Console

from five.cli.live import View, bottleneck, plain, spark
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Instance, Lease, Leases
from rapid.store.series import Series
from rapid.store.state import RunState


def instance(kind: str, **stats: object) -> Instance:
    return Instance(kind, "0", "", "", 0.0, 0.0, dict(stats))


ALL = [instance("inference"), instance("optimizer"), instance("rollout")]


def test_what_is_missing_is_the_bottleneck() -> None:
    assert bottleneck([], {}) == "no optimizer is up"
    assert bottleneck(ALL[1:], {}) == "no inference server is up"
    assert bottleneck(ALL[:2], {}) == "no rollout is up"


def test_the_bottleneck_is_named_from_the_shares_of_time() -> None:
    assert "first version" in bottleneck(ALL, {})
    assert bottleneck(ALL, {"busy_share": 0.95, "wait_share": 0.0}).startswith("the optimizer")
    assert bottleneck(ALL, {"busy_share": 0.2, "wait_share": 0.8}).startswith("the games")
    waiting = [*ALL[:2], instance("rollout", inference=0.9)]
    assert bottleneck(waiting, {"busy_share": 0.2, "wait_share": 0.8}).startswith("inference")


def test_a_spark_line_spans_the_values() -> None:
    assert spark([0.0, 0.5, 1.0]) == "▁▄█"
    assert spark([2.0, 2.0]) == "▁▁"
    assert spark([]) == ""
    assert len(spark([float(i) for i in range(100)])) == 24


def test_the_view_shows_what_the_store_holds(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path, append_only=False).start() as server:
        client = redis.Redis.from_url(server.url)
        state, series = RunState(client, "trial"), Series(client, "trial")
        state.create({}, "test")
        series.append("versions", {"version": 7, "staleness_median": 1.0, "reuse": 0.98, "busy_share": 0.5,
                                   "wait_share": 0.5, "hero_steps_per_second": 1234.0, "seconds": 10.0})
        series.append("ratings", {"version": 7, "mu": 12.34, "sigma": 1.0, "win_rates": {"random": 0.9}})
        series.append("games", {"statistics": {"last_hits": 3.0, "denies": 1.0}})
        Lease(client, "trial", "optimizer", "0", 10.0).renew({"buffer": 5})
        view = View(state, series, Leases(client, "trial"), None)
        view.read()
        console = Console(width=160, record=True)
        console.print(view.render())
        text = console.export_text()
        for words in ("trial", "starting", "1,234", "12.3 ± 1.0", "90 %", "last hits", "no inference server is up"):
            assert words in text, words
        assert "version 7" in plain(state, view.newest("versions"), view.newest("ratings"))
        view.read()
        assert len(view._records["versions"]) == 1  # news only
