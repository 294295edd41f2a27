"""Evaluation games of a packed agent against the bots, played in this process or in several.

Each game is appended to a journal in the run's folder when it ends, so that an interrupted evaluation continues.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dota.rule_changes import REVISION
from dota.vec_game import BOTS, STATS, TEAMS
from five.agent.model.policy import Policy
from five.agent.model.temperature import at_temperature
from five.agent.surgery import AgentSpec
from five.evaluation.journal import Journal
from five.evaluation.match import Contestant, MatchGame, play_planned
from five.packed_agents.games import EvaluationGames, GameRow
from five.packed_agents.policy import policy_of
from five.packed_agents.weights import read_weights
from rapid.child_process import die_with_parent

CHUNK_PAIRS = 4  # pairs of games that a process plays at once


class WeightsFile(NamedTuple):
    """A file of weights with its digest, the agent that they belong to, and the temperature at which it plays."""

    path: Path
    sha256: str
    spec: AgentSpec
    temperature: float = 1.0

    def policy(self) -> Policy:
        """Return the policy of the stored weights. Raises AgentUnavailable."""
        tensors = read_weights(self.path, self.spec, self.sha256)
        return policy_of(self.spec, at_temperature(tensors, self.temperature))


class Chunk(NamedTuple):
    """Games of one process: pairs and sides against a bot."""

    bot: str
    planned: Sequence[tuple[int, int]]
    seed: int


def journal_path(run: Path, weights: WeightsFile) -> Path:
    """Return the path of the journal in a run's folder for the games of these weights under the present rules."""
    suffix = "" if weights.temperature == 1 else f"-temperature-{weights.temperature:g}"
    return run / "agent-games" / f"{weights.sha256[:16]}-rules-{REVISION}{suffix}.jsonl"


def recorded_games(path: Path, weights: WeightsFile, seed: int) -> EvaluationGames:
    """Return the games of a journal that were played with this seed."""
    rows = [GameRow.model_validate({key: value for key, value in row.items() if key != "seed"})
            for row in Journal(path).rows.values() if row["seed"] == seed]
    order = {bot: number for number, bot in enumerate(BOTS)}
    rows.sort(key=lambda row: (order[row.against], row.pair, row.side))
    return EvaluationGames(weights_sha256=weights.sha256, temperature=weights.temperature, rules=REVISION, seed=seed,
                           columns=list(STATS), games=rows)


def play_games(path: Path, weights: WeightsFile, seed: int, pairs: int, processes: int = 1,
               say: Callable[[str], None] = lambda text: None) -> None:
    """Play ``pairs`` pairs of games against each bot, except those that the journal at ``path`` has already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(path)

    def on_game(row: GameRow) -> None:
        name = f"{row.against}/{seed}/{row.pair}/{row.side}"
        journal.write({name: {"seed": seed, **row.model_dump(mode="json")}})
        played = [r for r in journal.rows.values() if r["against"] == row.against and r["seed"] == seed]
        if len(played) == TEAMS * pairs:
            say(f"{row.against}: {len(played)} games, score {sum(r['score'] for r in played) / len(played):.2f}")

    chunks = list(_missing_chunks(journal, seed, pairs, CHUNK_PAIRS if processes > 1 else pairs))
    if processes == 1:
        policy = weights.policy()
        for chunk in chunks:
            _play(policy, weights.spec, chunk, on_game)
        return
    with worker_pool(processes) as workers:
        try:
            playing = [workers.submit(_play_chunk, weights.path, weights.sha256, weights.spec.to_json(),
                                      weights.temperature, chunk) for chunk in chunks]
            for done in as_completed(playing):
                for row in done.result():
                    on_game(row)
        except BaseException:
            workers.shutdown(cancel_futures=True)
            raise


def worker_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of new processes that end with this one, however it ends: idle workers do not notice its death."""
    return ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (os.getpid(),))


def _start_worker(parent: int) -> None:
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a traceback


def _missing_chunks(journal: Journal, seed: int, pairs: int, size: int) -> Iterator[Chunk]:
    """Yield the games that the journal lacks, up to ``size`` pairs of one bot together."""
    done = {(row["against"], row["pair"], row["side"]) for row in journal.rows.values() if row["seed"] == seed}
    for bot in BOTS:
        planned = [(pair, side) for pair in range(pairs) for side in range(TEAMS) if (bot, pair, side) not in done]
        for _, games in groupby(planned, lambda game: game[0] // size):
            yield Chunk(bot, list(games), seed)


def _play_chunk(path: Path, sha256: str, spec: str, temperature: float, chunk: Chunk) -> list[GameRow]:
    """Play a chunk in a worker process."""
    torch.set_num_threads(1)
    weights = WeightsFile(path, sha256, AgentSpec.from_json(spec), temperature)
    rows: list[GameRow] = []
    _play(weights.policy(), weights.spec, chunk, rows.append)
    return rows


def _play(policy: Policy, spec: AgentSpec, chunk: Chunk, on_game: Callable[[GameRow], Any]) -> None:
    play_planned(spec.game, Contestant("agent", policy), Contestant.bot(chunk.bot), chunk.planned, chunk.seed,
                 on_game=lambda played: on_game(_row(chunk.bot, played)))


def _row(bot: str, played: MatchGame) -> GameRow:
    own, other = ([round(float(value), 3) for value in row] for row in played.statistics)
    return GameRow(against=bot, pair=played.pair, side=played.side, score=played.score,
                   seconds=round(played.seconds, 3), own=own, other=other)
