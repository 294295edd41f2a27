"""A packed agent with random weights of a tiny network, made of a run that has ended."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dota.vec_game import BOTS, STATS
from five.agent.surgery import AgentSpec
from five.evaluation.archived_versions import ArchivedVersions
from five.local.run_folder import RunFolder
from five.packed_agents.card import AgentCard, CheckGame, TrainingFacts
from five.packed_agents.folder import PackedAgent
from five.packed_agents.games import EvaluationGames, GameRow
from five.packed_agents.packing import EvaluationRequest, PackRequest, pack
from five.run.load import load, save
from rapid import tensorfile
from rapid.blobs import BlobStore
from tests.e2e.running import TINY

VERSION = 8
GAME = ("game.max_game_seconds=20", "game.start_seconds=-1")


def random_tensors(spec: AgentSpec, seed: int = 3) -> dict[str, np.ndarray]:
    """Return a version's tensors, equal on every machine: uniform parameters, statistics of a thousand rows."""
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray] = {}
    for name, labels in spec.labels.items():
        if labels.dtype == "float64":
            found[name] = np.full(labels.shape, 1000.0) if name.endswith("count") else \
                rng.uniform(0.5, 1.5, labels.shape) * (1000.0 if name.endswith("squares") else 0.1)
        else:
            found[name] = rng.uniform(-0.3, 0.3, labels.shape).astype(np.float32)
    return found


def ended_run(folder: Path, overrides: Sequence[str] = ()) -> ArchivedVersions:
    """Return the archive of an ended run "trial" in ``folder`` with one version."""
    run = RunFolder(folder / "trial")
    run.create()
    config = load("laptop-1v1", [*TINY, *GAME, *overrides]).model_copy(update={"name": "trial"})
    save(config, run.config)
    tensors = random_tensors(AgentSpec(config.game, config.model))
    BlobStore(str(run.path / "blobs")).put(tensorfile.file_pieces(tensors, {}), f"trial/versions/{VERSION:010d}")
    return ArchivedVersions(run)


def facts(version: int) -> TrainingFacts:
    """Return the facts of an invented training."""
    return TrainingFacts(command="five train --preset laptop-1v1", commit="0123abc", run="trial", version=version,
                         hero_steps=5_000_000_000, hours=1.5, hardware="2 cores, no GPU", cost="3.0 core-hours",
                         seeds=[0])


def games() -> EvaluationGames:
    """Return two invented games against each bot."""
    numbers = [1.0] * len(STATS)
    rows = [GameRow(against=bot, pair=0, side=side, score=0.5, seconds=20.0, own=numbers, other=numbers)
            for bot in BOTS for side in (0, 1)]
    return EvaluationGames(weights_sha256="ab" * 32, rules=1, seed=0, columns=list(STATS), games=rows)


def card() -> AgentCard:
    """Return the card of an invented agent."""
    return AgentCard(
        name="tiny", summary="A toy.", mode="1v1_mid", patch="7.21d", heroes=["nevermore"], license="Apache-2.0",
        training=facts(VERSION), rules=1, layout="0123456789abcdef", model_schema="0123456789abcdef", parameters=10,
        weights_sha256="ab" * 32, scores=games().scores(), games_file="games.json", replay_file="a.replay",
        check=CheckGame(against="scripted-easy", seed=5, timesteps=79, hash="0123456789abcdef"),
        weaknesses=["It does not exist."])


def request(**changes: Any) -> PackRequest:
    """Return a request to pack the newest version as the agent "tiny", with two games against each bot."""
    return PackRequest(**{"name": "tiny", "version": -1, "facts": facts, "weaknesses": ["It was never trained."],
                          "evaluation": EvaluationRequest(games=2), **changes})


def packed_agent(folder: Path, overrides: Sequence[str] = ()) -> PackedAgent:
    """Pack the agent "tiny" into ``folder``/agents, from a run in ``folder``/runs."""
    return pack(ended_run(folder / "runs", overrides), request(), folder / "agents")
