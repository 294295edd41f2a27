"""Real experience for benchmarks: games of bots, with the answers of a policy to each step; no network connection is
used."""

import numpy as np
import torch

from dota.spaces import Layout
from dota.vec_game import Controller, VecGame, Winner
from five.agent.config import LearnerConfig
from five.agent.learning.labels import RANKS
from five.agent.learning.samples import STATE_PREFIX, Arrays
from five.agent.model.policy import Policy
from five.benchmarks.game import snapshots
from five.run.config import RunConfig

GAMES = 8


def team_steps(config: RunConfig, steps: int, from_seconds: float, games: int = GAMES) -> Arrays:
    """Return observations of both sides of ``games`` bot games from ``from_seconds`` on, [steps, games * 2, ...]."""
    saved = snapshots(config.game, games, from_seconds)
    players = VecGame(config.game, games, seed=1)
    players.controllers[:] = Controller.SCRIPTED
    for i, snapshot in enumerate(saved):
        players.restore(i, snapshot)
    out = players.layout.allocate(steps, games * 2)
    for t in range(steps):
        for name, array in players.obs.items():
            out[name][t] = array.reshape(games * 2, *array.shape[2:])
        players.step()
        for ended in np.flatnonzero(players.winner != Winner.RUNNING).tolist():
            players.restore(ended, saved[ended])
    return out


def policy_of(config: RunConfig) -> Policy:
    """Return a policy of the run's sizes with its first parameters."""
    torch.manual_seed(config.seed)
    return Policy(Layout(config.game), config.model)


def samples(config: RunConfig, count: int, from_seconds: float) -> list[Arrays]:
    """Return ``count`` samples as an optimizer stores them: arrays [16, ...] of one team and its states."""
    learning = config.learning
    unroll, sides = learning.lstm_unroll_length, GAMES * 2
    windows = -(-count // sides)
    seen = team_steps(config, windows * unroll, from_seconds)
    policy = policy_of(config)
    rng = np.random.default_rng(config.seed)
    out = []
    for window in range(windows):
        span = slice(window * unroll, (window + 1) * unroll)
        batch = _add_policy_outputs(policy, learning, {name: array[span] for name, array in seen.items()}, rng)
        out += [{name: array[i] if name.startswith(STATE_PREFIX) else array[:, i] for name, array in batch.items()}
                for i in range(sides)]
    return out[:count]


def _add_policy_outputs(policy: Policy, learning: LearnerConfig, seen: Arrays, rng: np.random.Generator) -> Arrays:
    """Return the steps [T, B, ...] with the policy's actions and labels."""
    steps, teams = seen["shared"].shape[:2]
    heroes, buildings = policy.layout.heroes, policy.layout.groups["enemy_buildings"].count
    state = policy.initial_state(teams)
    batch: Arrays = {**seen, **{STATE_PREFIX + name: array.numpy() for name, array in state.items()}}
    acted = []
    for t in range(steps):
        acted.append(policy.act({name: torch.from_numpy(array[t]) for name, array in seen.items()}, state))
        state = acted[-1].state
    values = np.stack([a.values.numpy() for a in acted])
    advantages = rng.normal(size=values.shape).astype(np.float32)
    return batch | {
        "actions": np.stack([a.actions.numpy() for a in acted]),
        "behaviour_logp": np.stack([a.logp.numpy() for a in acted]), "behaviour_values": values,
        "advantages": advantages, "returns": values + advantages, "mask": np.ones_like(values),
        "resets": np.zeros((steps, teams), np.bool_), "versions": np.zeros((steps, teams), np.int32),
        "win_label": np.full((steps, teams), 0.5, np.float32),
        "rank_label": np.full((steps, teams, heroes, RANKS), 1 / RANKS, np.float32),
        "building_label": np.zeros((steps, teams, buildings), np.float32),
        "outcome_mask": np.zeros((steps, teams), np.float32)}


def batch_of(parts: list[Arrays]) -> Arrays:
    """Return samples as a learner's batch: [T, B, ...], states [B, ...]."""
    return {name: np.stack([p[name] for p in parts], 0 if name.startswith(STATE_PREFIX) else 1)
            for name in parts[0]}


def segment_of(parts: list[Arrays]) -> Arrays:
    """Return samples as a rollout's segment: [samples * 16, ...], states [samples, ...]."""
    return {name: (np.stack if name.startswith(STATE_PREFIX) else np.concatenate)([p[name] for p in parts])
            for name in parts[0]}


def name_of(device: torch.device | str) -> str:
    """Return the device with a GPU's model: ``cpu``, ``cuda NVIDIA H100 80GB HBM3``."""
    device = torch.device(device)
    return f"{device} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device)


def description(config: RunConfig) -> str:
    """Return a short description of the model for a row's conditions."""
    layout = Layout(config.game)
    return f"{config.model.lstm} LSTM units, {layout.heroes} heroes, layout {layout.hash}"
