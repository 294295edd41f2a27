"""Every benchmark at a size that says nothing about speed: its rows are there, and are numbers."""

import json
import math

import numpy as np
import pytest
import torch

from dota.config import GameConfig
from dota.vec_game import Controller, VecGame
from five.agent.config import BufferConfig
from five.agent.learning.learner import Learner
from five.benchmarks import (
    dotaservice,
    draft,
    env,
    experience,
    game,
    inference,
    load_clients,
    optimizer,
    play,
    publish,
    recorded_data,
    rest,
    results,
    spectate,
    train,
)
from five.benchmarks import load as crowd
from five.cli import bench
from five.cli.commands import parser
from five.local.cluster import free_ports
from five.run.load import load
from tests.e2e.running import TINY

SMALL = (*TINY, "game.start_seconds=-30")
STRETCH = game.GameWorkload(load("laptop-1v1", [*SMALL, "game.frameskip=4"]).game, from_seconds=-25.0, games=2,
                            steps=20, seconds=0.05, repeats=2)

FIXED = {
    "game": ("game.frames", "game.views", "game.bots", "game.encode", "game.hero_steps", "game.hero_steps_observed",
             "game.hero_steps_agents", "game.threads2", "game.world_states"),
    "env": ("env.hero_steps", "env.hero_steps.streams2"),
    "inference": ("inference.team_steps.batch1", "inference.team_steps.batch8", "inference.team_steps.batch60"),
    "experience": ("experience.bytes", "experience.segments", "experience.processor", "experience.draw",
                   "experience.draw.threads2"),
    "optimizer": ("optimizer.flops", "optimizer.samples", "optimizer.step.samples"),
    "publish": ("publish.seconds",),
    "rest": ("rest.status", "rest.versions", "rest.events", "rest.series"),
    "spectate": ("watch.timestep",),
    "dotaservice": ("dotaservice.1v1", "dotaservice.5v5"),
    "draft": ("draft.tree", "draft.leaves"),
    "play": ("play.delay.p50", "play.delay.p99", "play.processor"),
    "load": ("load.opponents.assign", "load.opponents.report", "load.redis.heartbeats", "load.redis.games",
             "load.redis.rollouts", "load.intake.segments"),
    "train": ("train.hero_steps", "train.efficiency"),
}


@pytest.fixture(autouse=True)
def exact_floats():
    """A benchmark flushes denormal floats to zero, as services do; the tests after it want them back."""
    yield
    torch.set_flush_denormal(False)


def check(rows, what):
    """The fixed rows are among them, each a finite number beside a reference, under stated conditions."""
    by_name = {r.name: r for r in rows}
    assert len(by_name) == len(rows)
    for name in FIXED[what]:
        assert by_name[name].reference is not None
    for r in rows:
        assert r.unit and math.isfinite(r.value) and r.value >= 0
        assert {"cpu", "cores", "load"} <= r.conditions.keys()
        if r.reference is not None:
            assert r.reference > 0
            assert r.ratio == pytest.approx(r.value / r.reference)
    told = json.loads(results.as_json(rows))
    assert [set(one) for one in told] == [{"name", "value", "unit", "reference", "ratio", "conditions"}] * len(rows)
    assert [one["value"] for one in told] == [r.value for r in rows]
    assert all(r.name in results.as_text(rows) for r in rows)


def test_draft():
    rows = draft.measure(draft.DraftWorkload(heroes=10, order="RDRDRDRDRD", line_ups=40, in_games=40))
    check(rows, "draft")
    by_name = {r.name: r for r in rows}
    assert by_name["draft.tree"].conditions["line_ups"] == 252


def test_picks_of_a_tree_are_counted():
    # Two heroes, one each: two open to the first, one to the second in each of two cases.
    assert draft.picks(2, "RD") == 2 + 2 * 1
    assert draft.picks(4, "DRRD") == 4 + 4 * 3 + 12 * 2 + 12 * 1


@pytest.mark.runs
def test_rest():
    rows = rest.measure(rest.RestWorkload(versions=20, clients=2, seconds=0.2, repeats=1))
    check(rows, "rest")


def test_lost_connections_are_failed_reads():
    (port,) = free_ports(1)
    with pytest.raises(RuntimeError, match="2 reads of /v1/status were not answered"):
        rest.read(f"http://127.0.0.1:{port}", "/v1/status", "token", 0.2, 2)


@pytest.mark.parametrize("module", [rest, spectate])
def test_measurement_of_a_run_asks_for_a_token(module, monkeypatch, capsys):
    monkeypatch.delenv("FIVE_OPERATOR_TOKEN", raising=False)
    with pytest.raises(SystemExit):
        module.main(["--url", "http://127.0.0.1:1"])
    assert "FIVE_OPERATOR_TOKEN is not set" in capsys.readouterr().err


@pytest.mark.slow
def test_load():
    size = crowd.LoadWorkload("laptop-1v1", SMALL, rollouts=6, versions=20, games=5, beats=3, from_seconds=-25.0)
    rows = crowd.measure(size)
    check(rows, "load")
    assert all(r.value > 0 for r in rows) and rows[0].conditions["rollouts"] == 6


@pytest.mark.runs
def test_play():
    rows = play.measure(play.PlayWorkload(STRETCH.game, seconds=1.5))
    check(rows, "play")
    assert {r.name: r for r in rows}["play.bytes"].value > 0


def test_dotaservice():
    rows = dotaservice.measure(dotaservice.DotaserviceWorkload(from_seconds=1.0, until_seconds=3.0))
    check(rows, "dotaservice")
    assert {r.name for r in rows} == {f"dotaservice.{mode}{part}" for mode in ("1v1", "5v5") for part in ("", ".game")}
    assert rows[2].conditions["state_bytes"] > rows[0].conditions["state_bytes"] > 1000


def test_spectate():
    rows = spectate.measure(spectate.SpectateWorkload(STRETCH.game, from_seconds=-25.0, steps=40, chunks=3, repeats=1))
    check(rows, "spectate")
    assert {r.name for r in rows} == {"watch.timestep", "watch.bytes", "watch.relay.viewers1", "watch.relay.viewers50"}


def test_game():
    rows = game.measure(STRETCH)
    check(rows, "game")
    named = {r.name: r for r in rows}
    for part in ("views", "bots", "encode"):  # compared with the engine's microseconds for the 4 frames of a timestep
        assert named[f"game.{part}"].reference == pytest.approx(4e6 / named["game.frames"].value)
    assert named["game.threads2"].conditions["threads"] == 2
    assert 1000 < named["game.world_states"].conditions["state_bytes"] < 65_536
    assert rows[0].conditions["observation_bytes"] == sum(a.nbytes for a in VecGame(STRETCH.game, 1).obs.values())


def test_game_workload_is_the_papers():
    size = game.GameWorkload()
    assert size.game == GameConfig() and size.game.heroes_per_team == 5
    assert size.from_seconds == 600 and size.games == 32 and game.BOTS is Controller.HARD


def test_parts_do_not_change_the_games():
    timed, stepped = (VecGame(STRETCH.game, 2, seed=5) for _ in range(2))
    parts = timed.time_parts(30, game.BOTS)
    assert parts.keys() == {"alone", "engine", "bots", "views", "encode"} and min(parts.values()) > 0
    stepped.controllers[:] = game.BOTS
    for _ in range(30):
        stepped.step()
    assert [timed.spectate(i) for i in range(2)] == [stepped.spectate(i) for i in range(2)]
    blind = VecGame(STRETCH.game, 1, seed=5, observations=False)
    assert blind.time_parts(2, game.BOTS)["encode"] == 0
    for steps, bots in ((0, game.BOTS), (2, Controller.POLICY)):
        with pytest.raises(ValueError, match="time_parts"):
            blind.time_parts(steps, bots)


def test_games_are_restored_before_they_end():
    saved = game.snapshots(STRETCH.game, 2, -25.0)
    stretch = game.LoopedGames(STRETCH, saved, False)
    times = []
    for _ in range(45):
        stretch.step()
        times.append(float(stretch.games.game_time[0]))
    assert times[0] == pytest.approx(times[20]) == pytest.approx(times[40])
    assert times[0] > -25.0
    assert max(times) == pytest.approx(times[19]) and times[19] < -25.0 + 21 * 4 / 30 + 0.2


@pytest.mark.runs
def test_env():
    rows = env.measure(env.EnvWorkload(STRETCH))
    check(rows, "env")


@pytest.mark.runs
def test_inference():
    rows = inference.measure(inference.InferenceWorkload("laptop-1v1", SMALL, (1, 8, 60), -25.0, seconds=0.1, repeats=2,
                                                         requests=10))
    check(rows, "inference")
    latency = {r.name: r.value for r in rows if r.unit == "ms"}
    for batch in (1, 8, 60):
        p50, p95, p99 = (latency[f"inference.latency.batch{batch}.{q}"] for q in ("p50", "p95", "p99"))
        assert 0 < p50 <= p95 <= p99


@pytest.mark.slow  # it starts processes
def test_inference_with_several_requests_a_batch():
    crowded = (*SMALL, "services.rollout.games=10", "services.rollout.groups=2")
    rows = inference.measure(inference.InferenceWorkload("laptop-1v1", crowded, (25,), -25.0, seconds=0.1, repeats=2,
                                                         requests=10))
    rate, *latency = rows
    assert rate.name == "inference.team_steps.batch25" and rate.value > 0
    assert (rate.conditions["rows_a_request"], rate.conditions["in_flight"]) == (9, 6)
    assert {r.conditions["in_flight"] for r in latency} == {3}
    assert all(r.value > 0 for r in latency)


def test_bare_pass_runs_as_in_the_server():
    config = load("laptop-1v1", SMALL)
    policy, seen = recorded_data.policy_of(config).eval(), recorded_data.team_steps(config, 2, -25.0)
    passes = inference.GraphedForwardPasses(config, policy, 8, torch.device("cpu")).of(seen, 5)
    assert [passes(), passes(), passes()] == [5.0, 5.0, 5.0]


def test_requests_that_fill_a_batch():
    assert load_clients.requests_of(60, 256) == [60]
    assert load_clients.requests_of(512, 64) == [64] * 8
    assert load_clients.requests_of(25, 10) == [9, 8, 8]


def test_experience():
    rows = experience.measure(experience.ExperienceWorkload("laptop-1v1", SMALL, 2, -25.0, seconds=0.1, repeats=2))
    check(rows, "experience")
    megabytes, segments, _, drawn, drawn_by_two = rows
    assert megabytes.value == pytest.approx(segments.value * segments.conditions["segment_bytes"] / 1e6)
    assert segments.conditions["segment_bytes"] < segments.conditions["segment_bytes_decoded"]
    assert 0 < drawn.conditions["sample_bytes"] < drawn.conditions["sample_bytes_decoded"]
    assert drawn.conditions["sample_bytes"] == drawn_by_two.conditions["sample_bytes"]


@pytest.mark.runs
def test_optimizer():
    rows = optimizer.measure(optimizer.OptimizerWorkload("laptop-1v1", SMALL, -25.0, seconds=0.1, repeats=2))
    check(rows, "optimizer")
    flops, samples, steps = rows
    assert 0 < steps.value and samples.reference == steps.reference
    assert flops.value / samples.value == pytest.approx(1e9 * samples.conditions["gflop_a_sample"], rel=0.1)


def test_batches_never_run_out():
    """More batches than the buffer's pacing allows a run from as few samples."""
    config = load("laptop-1v1", SMALL)
    parts = recorded_data.samples(config, config.learning.batch_samples, -25.0)
    batches = optimizer.endless_batches(config, Learner(recorded_data.policy_of(config), config.learning), parts)
    for _ in range(4 * int(BufferConfig().reuse_window_batches)):
        assert batches.next() is not None
        batches.prefetch()
    batches.discard()


@pytest.mark.runs
def test_publish():
    rows = publish.measure(publish.PublishWorkload("laptop-1v1", SMALL, 2))
    check(rows, "publish")
    assert [r.conditions["dtype"] for r in rows] == ["float32", "bfloat16"]
    assert rows[0].conditions["megabytes"] > rows[1].conditions["megabytes"]
    # Bytes of a published version: float32 tensors and float64 statistics.
    assert 4e-6 * rows[0].conditions["parameters"] <= rows[0].conditions["megabytes"] + 0.1


@pytest.mark.runs
@pytest.mark.timeout(900)
def test_train(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    size = train.TrainWorkload("laptop-1v1", (*SMALL, "services.evaluator.enabled=false"), seconds=3.0,
                               alone_seconds=0.05, repeats=2, from_seconds=-25.0)
    rows = train.measure(size)
    check(rows, "train")
    by_name = {r.name: r for r in rows}
    assert by_name["train.hero_steps"].reference == min(r.value for r in rows if r.name.startswith("train.alone."))
    assert {"train.share.optimizer", "train.share.inference", "train.share.game"} <= by_name.keys()


def test_possible_rate_of_the_cores():
    overrides = ["services.inference.threads=2"]
    # A game of 1 ms a hero-step, inference of 2 ms on two cores, a gradient of 5 ms: 10 core-milliseconds in all.
    alone = {"game": 1000.0, "inference": 500.0, "optimizer": 200.0}
    config = load("laptop-1v1", [*overrides, "schedules.scripted_fraction={initial: 0, ramps: []}"])
    assert train.possible(config, alone, 3) == pytest.approx(300.0)
    # With a bot in every game each hero-step that is learned from takes two of the game: 11 core-milliseconds.
    config = load("laptop-1v1", [*overrides, "schedules.scripted_fraction={initial: 1, ramps: []}"])
    assert train.possible(config, alone, 3) == pytest.approx(3000 / 11)
    assert train.possible(load("gpu-node"), alone, 3) is None


def test_recorded_data_matches_the_services_formats():
    config = load("laptop-1v1", SMALL)
    parts = recorded_data.samples(config, 20, -25.0)
    assert len(parts) == 20
    batch, segment = recorded_data.batch_of(parts[:3]), recorded_data.segment_of(parts[:2])
    assert batch["actions"].shape == (16, 3, 1, 6) and batch["state/h"].shape == (3, 1, 16)
    assert segment["shared"].shape[0] == 32 and segment["state/h"].shape[0] == 2
    assert np.array_equal(batch["shared"][:, 1], parts[1]["shared"])
    assert (batch["behaviour_logp"] < 0).any()


def test_bench_prints_json(monkeypatch, capsys):
    monkeypatch.setattr(game, "GameWorkload", lambda: STRETCH)
    assert bench.bench("game", True) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == list(FIXED["game"])
    assert bench.bench("game", False) == 0
    assert "game.frames" in capsys.readouterr().out


def test_bench_command_knows_every_benchmark():
    for what in (*bench.BENCHMARKS, "all"):
        assert parser().parse_args(["bench", what, "--json"]).what == what
    assert set(bench.BENCHMARKS) == set(FIXED)


def test_bench_uses_the_given_preset():
    asked = bench.size_of("publish", publish, None, ["store.chunk_mebibytes=2"])
    assert asked.overrides == (*publish.PublishWorkload().overrides, "store.chunk_mebibytes=2")
    assert asked.preset == "rerun"
    asked = bench.size_of("publish", publish, "gpu-node", ["seed=2"])
    assert (asked.preset, asked.overrides) == ("gpu-node", ("seed=2",))
    assert bench.size_of("game", game, None, []) == game.GameWorkload()
    with pytest.raises(RuntimeError, match=r"benchmark game takes no preset.*inference, experience, optimizer"):
        bench.size_of("game", game, "gpu-node", [])


def test_bench_command_takes_a_preset(monkeypatch, capsys):
    asked = parser().parse_args(["bench", "optimizer", "--json", "--preset", "laptop-5v5",
                                 *(f"--set={one}" for one in SMALL)])
    measured = []
    monkeypatch.setattr(optimizer, "measure", lambda size: measured.append(size) or [])
    assert bench.bench(asked.what, asked.json, asked.preset, asked.overrides) == 0
    assert measured == [optimizer.OptimizerWorkload("laptop-5v5", SMALL)]


def test_non_finite_measurement_is_refused():
    with pytest.raises(ValueError, match=r"a\.b: nan"):
        results.row("a.b", float("nan"), "s", 1.0, {})
    assert results.row("a.b", 1.0, "s", None, {}).ratio is None


def test_median_ignores_a_slow_interval(monkeypatch):
    clock, pace = [0.0], iter([0.25, 0.25, 8.0, *[0.25] * 100])
    monkeypatch.setattr(results.time, "perf_counter", lambda: clock[0])

    def work():
        clock[0] += next(pace)
        return 1.0

    assert results.median_rate(work, 1.0, 5) == 4.0
