"""Folder of a packed agent.

``weights.safetensors`` (`five.packed_agents.weights`), ``config.yaml`` (the configuration of its run, without
addresses), ``card.md`` (`AgentCard`), a file of evaluation games and a replay, which the card names.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dota.config import GameConfig
from dota.rule_changes import changes_since
from five.agent.model.policy import Policy
from five.agent.model.temperature import at_temperature
from five.agent.surgery import AgentSpec, derive_plan, migrate_policy
from five.agent.surgery.strict_yaml import parse_yaml
from five.packed_agents import card as cards
from five.packed_agents.card import AgentCard
from five.packed_agents.errors import AgentUnavailable, damaged, read_bytes
from five.packed_agents.games import EvaluationGames, parse_games
from five.packed_agents.policy import policy_of
from five.packed_agents.weights import Array, read_weights
from five.run.config import RunConfig
from five.run.load import ConfigError, rename, validate
from five.run.renamed_keys import migrate
from five.run.stored_values import move_to_bounds

VARIABLE = "FIVE_AGENTS"  # names a folder of packed agents that is searched first
CARD, CONFIG, WEIGHTS, GAMES = "card.md", "config.yaml", "weights.safetensors", "games.json"
MAX_CONFIG_BYTES = 1 << 16
MAX_GAMES_BYTES = 1 << 24
# Sections of a run that say what it learns. Of the others only the sizes of the services are kept.
TRAINING_SECTIONS = ("seed", "game", "rewards", "model", "compute", "learning", "schedules", "buffer", "league",
                     "rating")
SERVICES = ("rollout", "inference", "optimizer", "opponents", "evaluator")
ADDRESSES = ("address", "addresses", "past_addresses", "recover_checkpoint")
_HERE = Path(__file__).resolve().parent


def portable_config(config: RunConfig, name: str) -> RunConfig:
    """Return a run's configuration without the addresses, files and secrets of its machine."""
    tree = config.model_dump(mode="json", by_alias=True)
    portable: dict[str, Any] = {section: tree[section] for section in TRAINING_SECTIONS}
    portable["store"] = {"archive_every": tree["store"]["archive_every"]}
    portable["services"] = {
        service: {key: value for key, value in tree["services"][service].items() if key not in ADDRESSES}
        for service in SERVICES}
    return rename(validate(portable, name), name)


def agent_folders() -> list[Path]:
    """Return the folders that hold packed agents: ``$FIVE_AGENTS``, the source tree's ``agents/``, the installed
    package's."""
    folders = [Path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    return [folder for folder in [*folders, _HERE.parents[2] / "agents", _HERE / "agents"] if folder.is_dir()]


def packed_agents() -> dict[str, "PackedAgent"]:
    """Return the packed agents by name."""
    found: dict[str, PackedAgent] = {}
    for folder in agent_folders():
        for path in sorted(folder.glob(f"[!.]*/{CARD}")):  # a folder that is being written begins with "."
            found.setdefault(path.parent.name, PackedAgent(path.parent))
    return found


def find_agent(name: str, temperature: float | None = None) -> "PackedAgent":
    """Return the packed agent of a name or of a folder's path, which plays at ``temperature``, by default its card's.
    Raises AgentUnavailable naming the known ones."""
    known = packed_agents()
    if name in known:
        return PackedAgent(known[name].path, temperature)
    if (Path(name) / CARD).is_file():
        return PackedAgent(Path(name), temperature)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known agents: {', '.join(known) or 'none'}"
    raise AgentUnavailable(f"agent {name!r}: neither a packed agent nor a folder with {CARD} has this name; {hint}")


@dataclass(frozen=True)
class PackedAgent:
    """A packed agent's folder. Files are read when they are needed; every method raises AgentUnavailable for a file
    that is missing or damaged. It plays at ``given_temperature``, by default at its card's."""

    path: Path
    given_temperature: float | None = None

    @cached_property
    def card(self) -> AgentCard:
        """The card."""
        path = self.path / CARD
        try:
            return cards.parse_card(read_bytes(path, cards.MAX_BYTES))
        except AgentUnavailable:
            raise
        except ValueError as error:
            raise damaged(path, error) from None

    @cached_property
    def config(self) -> RunConfig:
        """Configuration of the run that trained the agent. Keys that were renamed since are migrated.

        Addresses in the file have no effect: a folder of unknown origin must not choose stores or services.
        """
        path = self.path / CONFIG
        text = read_bytes(path, MAX_CONFIG_BYTES)
        try:
            tree = parse_yaml(text)
            if not isinstance(tree, Mapping):
                raise ValueError("a configuration must be a mapping of sections")
            config = validate(move_to_bounds(migrate(tree))[0], str(path))
            return portable_config(config, config.name)
        except ConfigError as error:
            raise AgentUnavailable(str(error)) from None
        except ValueError as error:
            raise damaged(path, error) from None

    @cached_property
    def spec(self) -> AgentSpec:
        """Game and model of the agent. Raises AgentUnavailable if this release reads other arrays than the agent's."""
        spec = AgentSpec(self.config.game, self.config.model)
        for what, now, made in (("layout of observations and actions", spec.layout.hash, self.card.layout),
                                ("model schema", spec.schema, self.card.model_schema)):
            if now != made:
                raise AgentUnavailable(
                    f"agent {self.card.name!r} was packed with {what} {made}; this release derives {now} from "
                    f"{self.path / CONFIG}. Use the release of commit {self.card.training.commit}, or pack the agent "
                    "again with this one")
        return spec

    @cached_property
    def games(self) -> EvaluationGames:
        """The evaluation games that the card's scores are computed from."""
        path = self.path / self.card.games_file
        try:
            return parse_games(read_bytes(path, MAX_GAMES_BYTES))
        except AgentUnavailable:
            raise
        except ValueError as error:
            raise damaged(path, error) from None

    @property
    def temperature(self) -> float:
        """Temperature at which the agent plays (`five.agent.model.temperature`)."""
        return self.given_temperature or self.card.temperature

    @property
    def rule_changes(self) -> list[str]:
        """Changes of the game's rules since the evaluation. The scores do not include their effect."""
        return list(changes_since(self.card.rules))

    @property
    def replay(self) -> Path:
        """The replay's file."""
        return self.path / self.card.replay_file

    def tensors(self) -> dict[str, Array]:
        """Return the stored tensors by name, float32 and float64; their policy has the temperature of training."""
        return read_weights(self.path / WEIGHTS, self.spec, self.card.weights_sha256)

    def tensors_for(self, target: AgentSpec) -> dict[str, Array]:
        """Return the tensors, migrated to another game or model by surgery.

        Raises AgentUnavailable with the reason if no surgery step can do that.
        """
        tensors = self.tensors()
        if target.schema == self.spec.schema:
            return tensors
        try:
            plan = derive_plan(self.spec, target, "packed-agent")
            return migrate_policy(plan, self.spec, tensors)
        except ValueError as error:
            raise AgentUnavailable(
                f"agent {self.card.name!r} was trained in {self.card.mode}, patch {self.card.patch}, and cannot be "
                f"brought over to {target.game.mode}, patch {target.game.patch}, as configured: {error}. Use it in its "
                f"own game ({self.path / CONFIG}), or train another agent") from None

    def playing_tensors(self, target: AgentSpec | None = None) -> dict[str, Array]:
        """Return the tensors with which the agent plays at its temperature, by default in its own game."""
        return at_temperature(self.tensors_for(target or self.spec), self.temperature)

    def policy(self, game: GameConfig | None = None) -> Policy:
        """Return the policy on the CPU in evaluation mode and float32, by default for the agent's own game."""
        target = self.spec if game is None else AgentSpec(game, self.spec.model)
        return policy_of(target, self.playing_tensors(target))

    def untrained_heroes(self, game: GameConfig) -> list[str]:
        """Return the heroes of a game's pool that the agent has never played."""
        return [hero for hero in game.hero_pool if hero not in self.config.game.hero_pool]
