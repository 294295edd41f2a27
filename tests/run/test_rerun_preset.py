"""Every value that the paper (Berner et al. 2019) prints of Rerun, compared with the preset: table 2, figure 7, section
2, appendices J (rating), N (past opponents) and O (environment)."""

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from dota.config import evaluation_game
from dota.spaces import Layout
from dota.tables import HERO_PREFIX
from five.agent.compute import uses_cuda_graphs
from five.agent.config import ScheduleConfig
from five.agent.learning.learner import Learner
from five.agent.model.policy import Policy
from five.agent.schedules import hyperparameters_at
from five.capacity.cluster_sizes import clusters
from five.run.load import load
from tests.agent.standins import HYPER, TinyPolicy
from tests.agent.test_learner import CONFIG, batch_of
from tests.repository import ROOT

RERUN = load("rerun")
LEARNING, SERVICES = RERUN.learning, RERUN.services
(CLUSTER,) = [c for c in clusters() if c.name == "512 GPUs"]
TOTAL_SAMPLES = SERVICES.optimizer.optimizers * LEARNING.batch_samples


class Printed(NamedTuple):
    """A value of the paper and the preset's."""

    name: str
    paper: object
    ours: object


TABLE_2 = [
    Printed("frameskip", 4, RERUN.game.frameskip),
    Printed("LSTM unroll length", 16, LEARNING.lstm_unroll_length),
    Printed("samples per segment", 16, LEARNING.samples_per_segment),
    Printed("optimizer GPUs", 512, SERVICES.optimizer.optimizers),
    Printed("batch per optimizer GPU (samples)", 120, LEARNING.batch_samples),
    Printed("total batch (samples)", 61_440, TOTAL_SAMPLES),
    Printed("total batch (timesteps)", 983_040, TOTAL_SAMPLES * LEARNING.lstm_unroll_length),
    # Numbers of servers and machines are not part of the configuration; docs/scale.md uses these.
    Printed("rollout (forward-pass) GPUs", 512, CLUSTER.inference),
    Printed("gradient steps per iteration", 32, LEARNING.gradient_steps_per_iteration),
    Printed("LSTM size", 4096, RERUN.model.lstm),
    Printed("sample reuse", 1.0, RERUN.buffer.sample_reuse),
    Printed("team spirit", (0.3, 0.8), (RERUN.schedules.team_spirit.initial, RERUN.schedules.team_spirit.ramps[-1].to)),
    Printed("GAE horizon (seconds)", (180.0, 360.0), (RERUN.schedules.gae_horizon_seconds.initial,
                                                      RERUN.schedules.gae_horizon_seconds.ramps[-1].to)),
    Printed("GAE lambda", 0.95, LEARNING.gae_lambda),
    Printed("PPO clip", 0.2, LEARNING.ppo_clip),
    Printed("value loss weight", 1.0, LEARNING.value_loss_weight),
    Printed("entropy coefficient", (0.01, 0.001), (RERUN.schedules.entropy_coefficient.initial,
                                                   RERUN.schedules.entropy_coefficient.ramps[-1].to)),
    Printed("learning rate", (5e-5, 5e-6), (RERUN.schedules.learning_rate.initial,
                                            RERUN.schedules.learning_rate.ramps[-1].to)),
    Printed("Adam beta 1", 0.9, LEARNING.adam_beta1),
    Printed("Adam beta 2", 0.999, LEARNING.adam_beta2),
    Printed("share of games against past opponents", 0.2, RERUN.league.past_opponent_share),
    Printed("past opponents' quality learning rate", 0.01, RERUN.league.quality_learning_rate),
]
ELSEWHERE = [
    Printed("games at once (figure 2)", 57_600, SERVICES.rollout.processes * SERVICES.rollout.games),
    Printed("buffer of an optimizer (samples, figure 2)", 4096, RERUN.buffer.capacity_samples),
    Printed("elements clipped at this many deviations (section 3.2)", 5.0, LEARNING.gradient_clip),
    Printed("versions between additions to the pool (appendix N)", 10, RERUN.league.add_every_versions),
    Printed("TrueSkill sigma (appendix J)", 25 / 3, RERUN.rating.sigma),
    Printed("TrueSkill beta", 25 / 6, RERUN.rating.beta),
    Printed("TrueSkill tau", 0.0, RERUN.rating.tau),
    Printed("draw probability", 0.02, RERUN.rating.draw_probability),
    Printed("games of a rating", 750, RERUN.rating.games_per_rating),
    Printed("references within (TrueSkill)", 10.0, RERUN.rating.max_reference_distance),
    Printed("rewards (table 6)", "paper", RERUN.rewards.preset),
    Printed("rewards shrink by, every ten minutes", (0.6, 600.0), (RERUN.rewards.time_decay,
                                                                   RERUN.rewards.time_decay_seconds)),
    Printed("inputs are clipped at (deviations)", 5.0, RERUN.model.input_clip),
    Printed("share of the LSTM's input pooled over heroes", 0.25, RERUN.model.cross_hero_share),
    Printed("building events' horizon (seconds)", 120.0, LEARNING.building_horizon_seconds),
    Printed("heroes of a team", 5, RERUN.game.heroes_per_team),
    Printed("what is scripted of the courier (appendix P)", "scripted", RERUN.game.courier),
    Printed("actions left to scripts", [], RERUN.game.scripted_actions),
    Printed("bots that are trained against", 0.0, RERUN.schedules.scripted_fraction.initial),
    Printed("Dire sees a turned map", False, RERUN.game.observation.mirror_dire),
    Printed("fields left out of table 4", (), RERUN.game.observation.omit),
]
# Printed, and not so here, each with its reason.
OTHERWISE = {
    "windups": "not committed there: a small run then cancels almost all of its attacks",
    "weights of a last hit, of mana, of a death": "-0.16, 0.75, -1 there: a last hit then brings a twentieth of its "
                                                  "gold, too little to be found in a small run",
    "delay": "learned there: here it is always 0, because it stayed random",
    "entropy bonus of offsets": "as of all else there: at the whole bonus they stayed uniform in a small run",
    "scale of rewards": "their own deviation there: at a horizon of 180 s returns then deviate 50 times as much",
    "rollout CPUs": "51,200 there: games that wait for the policy alone take 133 cores (docs/scale.md)",
    "past opponents": "drawn for each game there, here for a group of games among versions that are in play: a version "
                      "is met as often, and inference has full batches of it",
    "quality of a past version": "a win takes eta / (N p) from it there, without bound (equation 14); here one unit at "
                                 "most, or a version that is almost never drawn and then beaten is never drawn again",
    "parameters": "158,502,815 there, 156.6 million here: the paper does not print the widths of most layers",
}
# Not printed at all, and a learner has to have them: these are this project's.
NOT_PRINTED = {
    "advantages are standardised": (LEARNING.normalise_advantages, True),
    "... over an optimizer's own batch": (LEARNING.advantage_scope, "rank"),
    "Adam's epsilon": (LEARNING.adam_epsilon, 1e-8),
    "decay of the second moment that the clip goes by": (LEARNING.gradient_clip_decay, 0.999),
    "gradient steps before the clip begins": (LEARNING.gradient_clip_warmup_steps, 100),
    "gradient steps at learning rate 0 at first": (LEARNING.initial_hold_steps, 32),
    "weights of the auxiliary heads": ((LEARNING.win_loss_weight, LEARNING.net_worth_rank_loss_weight,
                                        LEARNING.building_loss_weight), (1e-3, 0.1, 0.1)),
}
FIGURE_7 = {  # version: team spirit, GAE horizon, entropy coefficient, learning rate; a change begins at its version
    0: (0.3, 180.0, 0.01, 5e-5), 15_000: (0.8, 180.0, 0.01, 5e-5), 23_000: (0.8, 360.0, 0.01, 5e-5),
    43_000: (0.8, 360.0, 0.001, 5e-5), 54_000: (0.8, 360.0, 0.001, 5e-6)}


@pytest.mark.parametrize("value", TABLE_2 + ELSEWHERE, ids=lambda value: value.name)
def test_value_matches_the_paper(value: Printed) -> None:
    assert value.ours == value.paper


def test_documented_deviations_hold() -> None:
    """Each listed difference exists and is as large as stated."""
    assert RERUN.league.max_quality_drop == 1.0
    with torch.device("meta"):
        parameters = sum(p.numel() for p in Policy(Layout(RERUN.game), RERUN.model).parameters())
    assert round(parameters / 1e6, 1) == 156.6


@pytest.mark.parametrize("name", NOT_PRINTED)
def test_values_not_in_the_paper_are_listed(name: str) -> None:
    ours, listed = NOT_PRINTED[name]
    assert ours == listed


def test_all_rows_of_table_2_are_compared() -> None:
    """22 rows, Adam's counted as two. Values that change during the run are compared at both ends."""
    assert len([*TABLE_2, "rollout CPUs"]) == 23 and "rollout CPUs" in OTHERWISE
    assert len({value.name for value in TABLE_2 + ELSEWHERE}) == len(TABLE_2) + len(ELSEWHERE)


@pytest.mark.parametrize("version", FIGURE_7)
def test_schedule_matches_figure_7(version: int) -> None:
    """Before a change's version the old value holds, after the change the column's value."""
    past = 2_000 if version else 0
    columns = list(FIGURE_7)
    if version:
        before = FIGURE_7[columns[columns.index(version) - 1]]
        assert _scheduled(version) == pytest.approx(before)
    assert _scheduled(version + past) == pytest.approx(FIGURE_7[version])


def _scheduled(version: int) -> tuple[float, ...]:
    now = hyperparameters_at(RERUN.schedules, version, 0)
    return now.team_spirit, now.gae_horizon_seconds, now.entropy_coefficient, now.learning_rate


@pytest.mark.parametrize("schedule", [RERUN.schedules.team_spirit, RERUN.schedules.gae_horizon_seconds,
                                      RERUN.schedules.entropy_coefficient, RERUN.schedules.learning_rate])
def test_schedule_changes_take_one_to_two_days(schedule: ScheduleConfig) -> None:
    """Only these four change, once each. 54,000 versions were 42 days."""
    (ramp,) = schedule.ramps
    assert schedule.initial == ramp.from_
    assert 1 <= ramp.length / (54_000 / 42) <= 2


def test_heroes_are_those_of_the_finals() -> None:
    data = json.loads((ROOT / "libs/dota/data/dota-7.21d/heroes.json").read_text())
    expected = [name.removeprefix(HERO_PREFIX) for name in data["pool_finals_2019_17"]]
    assert sorted(RERUN.game.hero_pool) == sorted(expected) and len(expected) == 17


def test_all_randomisations_of_the_paper_are_on() -> None:
    """Appendix O.2 prints no magnitudes. Line-ups are sampled for each team."""
    values = RERUN.game.randomisation.magnitudes()
    assert values.keys() == {
        "attributes", "armor", "move_speed", "hp_regen", "mana_regen", "magic_resistance", "gold", "xp", "item_drop",
        "item_insert", "consumables", "skill", "lane", "lane_until_seconds", "roshan"}
    assert all(values.values()), values
    assert not any(m for name, m in evaluation_game(RERUN.game).randomisation.magnitudes().items()
                   if name != "lane_until_seconds")
    assert not RERUN.game.mirror_match


def test_gradients_are_averaged_during_backward() -> None:
    """A recorded step would average them afterwards. Inference uses graphs in any case."""
    gpu = torch.device("cuda")
    assert uses_cuda_graphs(gpu, RERUN.compute) and SERVICES.inference.device == "cuda"
    begun = _begun_within_backward(uses_cuda_graphs(gpu, RERUN.compute, SERVICES.optimizer.cuda_graphs))
    assert begun > 1
    assert _begun_within_backward(uses_cuda_graphs(gpu, RERUN.compute)) == 0


def _begun_within_backward(graphs: bool) -> int:
    """Return the buckets of a small learner's step whose averaging began before the backward pass ended."""
    begun, seen = list[Tensor](), list[int]()

    def begin(bucket: Tensor) -> Callable[[], None]:
        begun.append(bucket)
        return lambda: None

    policy = TinyPolicy()
    learner = Learner(policy, CONFIG, all_reduce=lambda tensors: None, start_all_reduce=begin, bucket_bytes=4,
                      graphs=graphs)
    average = learner._all_reduce_gradients

    def behind(shared: Tensor) -> None:
        seen.append(len(begun))
        average(shared)

    learner._all_reduce_gradients = behind  # type: ignore[method-assign]
    learner.train_step(batch_of(policy), HYPER)
    assert begun
    return seen[0]
