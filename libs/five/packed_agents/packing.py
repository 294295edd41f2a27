"""Packing of a run's version as a folder that is usable without the run, and its renewal after the game changed."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dota.replay import Replay
from dota.rule_changes import REVISION
from dota.vec_game import BOTS, TEAMS
from five import yaml_core
from five.agent.model.policy import Policy
from five.agent.surgery import AgentSpec
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.match import Contestant, play_planned
from five.local.run_lock import FileLock
from five.packed_agents.card import MAX_BYTES, AgentCard, TrainingFacts, card_text, first_problem
from five.packed_agents.check import check_timesteps, play_check
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.evaluation import WeightsFile, journal_path, play_games, recorded_games
from five.packed_agents.folder import CARD, CONFIG, GAMES, WEIGHTS, PackedAgent, portable_config
from five.packed_agents.games import EvaluationGames
from five.packed_agents.play_settings import changed_config, changed_settings
from five.packed_agents.weights import write_weights
from five.run.config import RunConfig
from rapid.atomic_file import replace_text

REPLAY_AGAINST = "scripted"
LICENSE = "Apache-2.0"


@dataclass(frozen=True)
class EvaluationRequest:
    """Evaluation of an agent: ``games`` against each bot are played if they are missing, in ``processes``; 0 plays
    none."""

    games: int = 0
    seed: int = 0
    processes: int = 1


@dataclass(frozen=True)
class PackRequest:
    """A version to pack, and what only a person knows about it. It is evaluated at ``temperature``, at which the agent
    plays from then on."""

    name: str
    version: int
    facts: Callable[[int], TrainingFacts]  # of the version's number
    weaknesses: Sequence[str]
    summary: str = ""
    license: str = LICENSE
    evaluation: EvaluationRequest = EvaluationRequest()
    temperature: float = 1.0


def pack(archive: ArchivedVersions, request: PackRequest, into: Path, say: Callable[[str], None] = lambda text: None
         ) -> PackedAgent:
    """Pack a version into the folder ``into``/NAME, which appears at once when everything is written.

    The evaluation plays the rounded weights that are packed. Raises AgentUnavailable for a name that exists, for
    weights without evaluation games and for a text that no card holds; VersionNotArchived; RunInUse while another
    process plays the same games.
    """
    target = into / request.name
    if target.exists():
        raise AgentUnavailable(f"{target} exists: choose another --name, or remove the folder")
    config = portable_config(archive.config, request.name)
    spec = AgentSpec(config.game, config.model)
    number, loaded, _ = archive.load(request.version)
    facts = request.facts(number)
    into.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{request.name}.", dir=into))
    try:
        sha256 = write_weights(partial / WEIGHTS, {name: t.numpy() for name, t in loaded.state_dict().items()})
        weights = WeightsFile(partial / WEIGHTS, sha256, spec, request.temperature)
        policy = weights.policy()
        games = _evaluate(journal_path(archive.folder.path, weights), weights, request.evaluation, say)
        _require_all_bots(games, f"version {number}", request.evaluation)
        replay = f"against-{REPLAY_AGAINST}.replay"
        _record(policy, config, request.evaluation.seed, partial / replay)
        replace_text(partial / CONFIG, _config_text(config))
        replace_text(partial / GAMES, games_text(games))
        check = play_check(policy, config.game, timesteps=check_timesteps(spec))
        card = _valid_card(request.name, {
            "name": request.name, "summary": request.summary or _summary(config, facts), "mode": config.game.mode,
            "patch": config.game.patch, "heroes": list(config.game.hero_pool), "license": request.license,
            "training": facts, "rules": REVISION, "layout": spec.layout.hash, "model_schema": spec.schema,
            "parameters": spec.parameters, "weights_sha256": sha256, "temperature": request.temperature,
            "scores": games.scores(), "games_file": GAMES, "replay_file": replay, "check": check,
            "weaknesses": list(request.weaknesses)})
        replace_text(partial / CARD, card_text(card))
        PackedAgent(partial).policy()  # raises if a file that was just written cannot be read
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError as error:
            raise AgentUnavailable(f"{target} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return PackedAgent(target)


def renew(agent: PackedAgent, evaluation: EvaluationRequest = EvaluationRequest(), weaknesses: Sequence[str] = (),
          say: Callable[[str], None] = lambda text: None, overrides: Sequence[str] = ()) -> AgentCard:
    """Bring an agent's folder up to date after the game has changed, and return the new card.

    The check game is played and the replay recorded again. With ``evaluation.games`` the agent is evaluated again as
    well, under today's rules; otherwise its scores stay. ``weaknesses`` replace those of the card. ``overrides``
    (``game.frameskip=8``) change settings that it plays with, which needs an evaluation. An interrupted renewal
    continues. Raises AgentUnavailable, ConfigError, RunInUse.
    """
    if overrides and not evaluation.games:
        raise AgentUnavailable(f"agent {agent.card.name!r}: other settings need an evaluation: add --games 100")
    config = changed_config(agent, overrides) if overrides else agent.config
    policy = agent.policy(config.game)
    changed: dict[str, Any] = {"weaknesses": list(weaknesses)} if weaknesses else {}
    if overrides:
        changed["settings"] = changed_settings(agent, config)
    _valid_card(agent.card.name, {**dict(agent.card), **changed})  # before hours of games
    spec = AgentSpec(config.game, config.model)
    weights = WeightsFile(agent.path / WEIGHTS, agent.card.weights_sha256, spec, agent.card.temperature)
    journals = _journals(agent, config)
    journal = journal_path(journals, weights)
    if evaluation.games:
        games = _evaluate(journal, weights, evaluation, say)
        _require_all_bots(games, f"agent {agent.card.name!r}", evaluation)
        replace_text(agent.path / agent.card.games_file, games_text(games))
        changed |= {"rules": REVISION, "scores": games.scores()}
    _record(policy, config, 0, agent.replay)
    changed["check"] = play_check(policy, config.game, timesteps=check_timesteps(spec))
    card = _valid_card(agent.card.name, {**dict(agent.card), **changed})
    # The card first: a renewal that goes on after a crash knows from it what the agent was trained with.
    replace_text(agent.path / CARD, card_text(card))
    if overrides:
        replace_text(agent.path / CONFIG, _config_text(config))
    if evaluation.games:
        shutil.rmtree(journals)
    return card


def _journals(agent: PackedAgent, config: RunConfig) -> Path:
    """Return the folder for the games of a renewal: games of other settings must not be mixed with them."""
    text = config.game.model_dump_json().encode()
    return agent.path / f"renewal-{hashlib.sha256(text).hexdigest()[:16]}"


def games_text(games: EvaluationGames) -> str:
    """Return the contents of a file of games, one line a game."""
    head = games.model_copy(update={"games": []}).model_dump_json()
    rows = ",\n".join(row.model_dump_json() for row in games.games)
    return f"{head.removesuffix(']}')}\n{rows}\n]}}\n"


def _config_text(config: RunConfig) -> str:
    return yaml_core.dump(config.model_dump(mode="json", by_alias=True), sort_keys=False)


def _valid_card(name: str, values: Mapping[str, Any]) -> AgentCard:
    """Return the card of these values. Raises AgentUnavailable for one that could not be read back."""
    try:
        card = AgentCard(**values)
    except ValidationError as error:
        raise AgentUnavailable(f"card of {name!r}: {first_problem(error)}") from None
    size = len(card_text(card).encode())
    if size > MAX_BYTES:
        raise AgentUnavailable(f"card of {name!r}: it has {size} bytes, at most {MAX_BYTES} are allowed: shorten its "
                               "texts")
    return card


def _evaluate(journal: Path, weights: WeightsFile, evaluation: EvaluationRequest, say: Callable[[str], None]
              ) -> EvaluationGames:
    """Play the evaluation games that the journal lacks, and return those of the seed."""
    if evaluation.games:
        journal.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(journal.with_suffix(".lock"), str(journal),
                      "wait until that `five agents` has ended, or end it; its games are kept"):
            play_games(journal, weights, evaluation.seed, (evaluation.games + 1) // 2, evaluation.processes, say)
    return recorded_games(journal, weights, evaluation.seed)


def _require_all_bots(games: EvaluationGames, subject: str, evaluation: EvaluationRequest) -> None:
    """Raise AgentUnavailable unless all bots have played equally many whole pairs.

    Games end in order of their length, so those of an interrupted evaluation are the short ones.
    """
    count = TEAMS * (1 + max((row.pair for row in games.games), default=-1))
    expected = {divmod(game, TEAMS) for game in range(count)}
    missing = [bot for bot in BOTS
               if {(row.pair, row.side) for row in games.games if row.against == bot} != expected or not count]
    if missing:
        lacks = f"does not have all {count} evaluation games" if count else "has no evaluation games"
        raise AgentUnavailable(
            f"{subject} {lacks} of its packed weights with seed {evaluation.seed} against {', '.join(missing)}: "
            f"--games {count or 100} plays {count or 100} games against each bot, and continues after an interruption")


def _record(policy: Policy, config: RunConfig, seed: int, path: Path) -> None:
    """Record a game of the agent as the Radiant."""
    def save(replay: Replay, final: int) -> None:
        replay.save(path, final)

    play_planned(config.game, Contestant(config.name, policy), Contestant.bot(REPLAY_AGAINST), [(0, 0)], seed,
                 record=save)


def _summary(config: RunConfig, facts: TrainingFacts) -> str:
    game: Mapping[str, str] = {"1v1_mid": "one against one in the middle lane", "5v5": "five against five"}
    return (f"An agent for {game.get(config.game.mode, config.game.mode)}, trained by self-play for {facts.hours:.1f} "
            f"hours ({facts.hero_steps:,} hero-steps).")
