"""Test doubles of the policy and the game, on which learning takes seconds."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from five.agent.learning.labels import GameOutcome
from five.agent.learning.outcome_samples import OutcomeSamples
from five.agent.learning.segments import Bootstrap, cut_segment
from five.agent.model.normaliser import RewardStatistics, RunningStatistics
from five.agent.schedules import Hyperparameters

# Tests run in parallel, where several torch threads are slower at these sizes.
torch.set_num_threads(1)

HYPER = Hyperparameters(1e-2, 0.01, 0.0, 180.0)
BUILDINGS = 2


@dataclass
class Unrolled:
    logp: torch.Tensor
    entropy: torch.Tensor
    values: torch.Tensor
    aux: dict
    entropies: dict
    observation_moments: torch.Tensor
    max_entropies: dict = field(default_factory=dict)


class TinyPolicy(nn.Module):
    """Recurrent policy of H heroes that read ``x`` [B, F]: one LSTM cell and one categorical head of ``choices``."""

    def __init__(self, features=3, heroes=2, choices=2, hidden=16, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.heroes, self.hidden = heroes, hidden
        self.dense = False
        self.place = nn.Parameter(torch.randn(heroes, 4))
        self.cell = nn.LSTMCell(features + 4, hidden)
        self.head = nn.Linear(hidden, choices)
        self.value = nn.Linear(hidden, 1)
        self.win = nn.Linear(hidden, 1)
        self.rank = nn.Linear(hidden, 5)
        self.building = nn.Linear(hidden, BUILDINGS)
        self.statistics = RunningStatistics(features)
        self.rewards = RewardStatistics()

    def initial_state(self, teams):
        return {"h": torch.zeros(teams, self.heroes, self.hidden), "c": torch.zeros(teams, self.heroes, self.hidden)}

    def _step(self, x, h, c):
        count = self.statistics.count.clamp_min(1.0)
        deviation = torch.where(self.statistics.count > 0, (self.statistics.squares / count + 1e-6).sqrt(), 1.0)
        x = ((x.double() - self.statistics.mean) / deviation).float()
        x = torch.cat((x[:, None].expand(-1, self.heroes, -1), self.place.expand(len(x), -1, -1)), -1)
        h, c = self.cell(x.flatten(0, 1), (h.flatten(0, 1), c.flatten(0, 1)))
        return h.unflatten(0, (-1, self.heroes)), c.unflatten(0, (-1, self.heroes))

    def _aux(self, h):
        return {"win_probability": self.win(h)[..., 0], "net_worth_rank": self.rank(h.detach()),
                "building_events": self.building(h.detach())}

    @torch.no_grad()
    def act(self, obs, state, generator=None):
        h, c = self._step(obs["x"], state["h"], state["c"])
        logits = self.head(h).log_softmax(-1)
        choice = torch.multinomial(logits.exp().flatten(0, 1), 1, generator=generator).view(h.shape[:2])
        actions = torch.zeros(*h.shape[:2], 6, dtype=torch.int16)
        actions[..., 0] = choice
        logp = logits.gather(-1, choice[..., None])[..., 0]
        aux = self._aux(h)
        probabilities = {"win_probability": aux["win_probability"].sigmoid(),
                         "net_worth_rank": aux["net_worth_rank"].softmax(-1),
                         "building_events": aux["building_events"].sigmoid()}
        return actions, logp, self.value(h)[..., 0], probabilities, {"h": h, "c": c}

    def index_batch(self, obs, actions, resets):
        return None

    def unroll(self, obs, actions, state, resets=None, index=None):
        h, c = state["h"], state["c"]
        hidden = []
        for t in range(actions.shape[0]):
            keep = 1.0 if resets is None else (~resets[t]).float()[:, None, None]
            h, c = self._step(obs["x"][t], h * keep, c * keep)
            hidden.append(h)
        core = torch.stack(hidden)
        logits = self.head(core).log_softmax(-1)
        logp = logits.gather(-1, actions[..., :1].long())[..., 0]
        entropy = -(logits.exp() * logits).sum(-1)
        return Unrolled(logp, entropy, self.value(core)[..., 0], self._aux(core), {"action": entropy},
                        self.statistics.moments(obs["x"]))

    def update_normaliser(self, moments):
        self.statistics.merge(moments)


class MemoryGame:
    """Game in which step 1 shows a bit that is the right answer in steps 3 and 5, so it needs memory."""

    length = 5
    asked = (2, 4)

    def __init__(self, rng):
        self.rng = rng
        self.t, self.bit = 0, int(rng.integers(2))

    def observe(self):
        x = np.zeros(3, np.float16)
        if self.t == 0:
            x[0], x[1] = 2 * self.bit - 1, 1
        x[2] = self.t in self.asked
        return {"x": x}

    def step(self, choice):
        """Return rewards [H] and, at the end, the outcome."""
        rewards = np.where(choice == self.bit, 1.0, -1.0) if self.t in self.asked else np.zeros(len(choice))
        self.t += 1
        if self.t < self.length:
            return rewards, None
        won = float(rewards.mean() > 0)
        self.t, self.bit = 0, int(self.rng.integers(2))
        return rewards, GameOutcome(won, np.arange(len(choice)))


class FavouriteGame:
    """Game of 50 segments of 8 steps without rewards. ``x[0]`` shows from the start who wins.

    The first game is shorter by a random number of steps, so that parallel games end at different times.
    """

    length = 400

    def __init__(self, rng):
        self.rng = rng
        self._start()
        self.t = int(rng.integers(self.length))

    def _start(self):
        self.t, self.sign = 0, self.rng.choice([-1.0, 1.0])

    def observe(self):
        return {"x": np.array([self.sign, 0.0, self.t / self.length], np.float16)}

    def step(self, choice):
        """Return rewards [H] and, at the end, the outcome."""
        sign = self.sign
        self.t += 1
        if self.t < self.length:
            return np.zeros(len(choice)), None
        self._start()
        return np.zeros(len(choice)), GameOutcome(float(sign > 0), np.arange(len(choice)))


class Recorder:
    """Steps of one team, cut as a rollout does: at full segments with a known next step, and at a game's end."""

    def __init__(self, config, horizon=180.0, reward_std=1.0):
        self.outcome_samples = OutcomeSamples(config.outcome_samples_per_game, np.random.default_rng(0))
        self.config, self.horizon, self.reward_std = config, horizon, reward_std
        self.length = config.lstm_unroll_length * config.samples_per_segment
        self.running, self.begins, self.steps = None, True, []

    def add(self, observation, state, actions, logp, values, predictions, version, rewards, outcome=None, fallen=None):
        """Add a step and return the completed segments. ``state`` is that before the step."""
        done = self._cut(Bootstrap(values, predictions)) if len(self.steps) == self.length else []
        if fallen is None:
            fallen = np.zeros(np.shape(predictions["building_events"])[-1])
        arrays = {**observation, "actions": actions, "behaviour_logp": logp, "behaviour_values": values,
                  "versions": np.int32(version)}
        self.steps.append(({k: np.array(v) for k, v in arrays.items()}, {k: np.array(v) for k, v in state.items()},
                           np.array(rewards, np.float64), fallen))
        if outcome is not None:
            done += self._cut(outcome)
            self.begins, self.running = True, None
        return done

    def _cut(self, end):
        arrays, states, rewards, fallen = zip(*self.steps, strict=True)
        if self.running is None:
            self.running = np.zeros_like(rewards[0])
        begins, self.begins, self.steps = self.begins, False, []
        segment = cut_segment(
            {k: np.stack([a[k] for a in arrays]) for k in arrays[0]}, np.arange(len(arrays)),
            states={k: np.stack([s[k] for s in states[:: self.config.lstm_unroll_length]]) for k in states[0]},
            rewards=np.stack(rewards), fallen=np.stack(fallen), begins=begins, end=end, config=self.config,
            gae_horizon_seconds=self.horizon, reward_std=self.reward_std, running_return=self.running,
            timestep_seconds=4 / 30)
        self.outcome_samples.add(segment)
        if isinstance(end, GameOutcome):
            self.outcome_samples.finish_game(end)
        labelled = self.outcome_samples.take()
        return [segment] if labelled is None else [segment, labelled]


class Rollout:
    """Plays games with a policy in one batch, and cuts segments."""

    def __init__(self, policy, config, games, seed, horizon=180.0, game=MemoryGame):
        rng = np.random.default_rng(seed)
        self.policy, self.games = policy, [game(rng) for _ in range(games)]
        self.recorders = [Recorder(config, horizon) for _ in range(games)]
        self.state = policy.initial_state(games)
        self.fresh = np.ones(games, bool)
        self.generator = torch.Generator().manual_seed(seed)

    def play(self, steps, version=0):
        """Return the segments completed within ``steps`` timesteps, and all rewards [steps * games, H]."""
        segments, collected = [], []
        for _ in range(steps):
            observations = [game.observe() for game in self.games]
            for i in np.flatnonzero(self.fresh):
                for array in self.state.values():
                    array[i] = 0
            batch = {"x": torch.from_numpy(np.stack([o["x"] for o in observations]))}
            actions, logp, values, aux, new = self.policy.act(batch, self.state, self.generator)
            for i, game in enumerate(self.games):
                rewards, outcome = game.step(actions[i, :, 0].numpy())
                collected.append(rewards)
                self.recorders[i].reward_std = self.policy.rewards.std()
                segments += self.recorders[i].add(
                    observations[i], {k: v[i].numpy() for k, v in self.state.items()}, actions[i].numpy(),
                    logp[i].numpy(), values[i].numpy(), {k: v[i].numpy() for k, v in aux.items()}, version, rewards,
                    outcome)
                self.fresh[i] = outcome is not None
            self.state = new
        return segments, np.array(collected)
