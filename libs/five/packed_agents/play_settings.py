"""Settings of the game that an agent may play with instead of those of its training.

They leave the layout of observations and actions as it is: how often it chooses, what it finishes or is not offered,
and how long a game may last.
"""

from collections.abc import Sequence

from five.packed_agents.card import ChangedSetting
from five.packed_agents.errors import AgentUnavailable
from five.packed_agents.folder import PackedAgent, portable_config
from five.run.config import RunConfig
from five.run.load import apply_overrides, validate

SETTINGS = ("frameskip", "commit_moves", "commit_windups", "save_consumables", "max_game_seconds")


def changed_config(agent: PackedAgent, overrides: Sequence[str]) -> RunConfig:
    """Return an agent's configuration with each ``game.KEY=VALUE``.

    Raises ConfigError for a value that is not allowed, AgentUnavailable for a key outside `SETTINGS`.
    """
    for text in overrides:
        key = text.partition("=")[0].strip()
        if key not in [f"game.{name}" for name in SETTINGS]:
            raise AgentUnavailable(f"--set {text}: agent {agent.card.name!r} can play with other values of "
                                   f"{', '.join(f'game.{name}' for name in SETTINGS)} only; {key} needs a training: "
                                   f"five train --from {agent.card.name} --set {text}")
    tree = agent.config.model_dump(mode="json", by_alias=True)
    config = validate(apply_overrides(tree, overrides), f"agent {agent.card.name!r}")
    return portable_config(config, agent.config.name)


def changed_settings(agent: PackedAgent, config: RunConfig) -> list[ChangedSetting]:
    """Return the settings of ``config`` that differ from those that the agent was trained with."""
    trained = {setting.key: setting.trained for setting in agent.card.settings}
    changed = []
    for name in SETTINGS:
        key, value = f"game.{name}", getattr(config.game, name)
        before = trained.get(key, getattr(agent.config.game, name))
        if value != before:
            changed.append(ChangedSetting(key=key, value=value, trained=before))
    return changed
