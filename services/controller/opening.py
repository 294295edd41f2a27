"""Making a run in its store, or going on with one that is there: what the controller and `five train` begin with."""

import logging
from typing import Any

from pydantic import ValidationError

from dota.config import GameConfig
from dota.spaces import Layout
from five.config import ModelConfig
from rapid.store.connection import safe_url
from rapid.store.state import ENDED, RunState, Status
from run.config import RunConfig

log = logging.getLogger(__name__)
# How a version is computed, not what it is.
OF_NO_VERSION = frozenset({"precision"})


class WrongRun(ValueError):
    """The run that is stored under this name is another one than the configuration describes."""


def document_of(config: RunConfig) -> dict[str, Any]:
    """The configuration as the run's store keeps it and REST shows it: without passwords."""
    tree: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    for key in ("state_url", "params_url"):
        tree["store"][key] = safe_url(tree["store"][key])
    return tree


def open_run(state: RunState, config: RunConfig, who: str, resume: bool = False) -> None:
    """Makes the run ``starting`` where there is none; otherwise goes on with it under ``config``. Repeating it changes
    nothing.

    ``resume`` starts a run again that was stopped or has failed. Raises WrongRun, having changed nothing, when the
    stored run's versions do not fit: its observations have another layout, or its model other sizes.
    """
    document = document_of(config)
    if state.create(document, who):
        log.info("run %r is made", config.name)
        return
    stored = state.config()
    if stored:
        require_same_versions(stored, config)
    if stored != document:
        state.set_config(document, who)
        log.info("run %r goes on with a changed configuration", config.name)
    if resume:
        now = state.status()
        if now is not None and now.status in ENDED:
            state.transition(Status.STARTING, who, "resumed")
        state.events.append(who, "run.resumed")


def require_same_versions(stored: dict[str, Any], config: RunConfig) -> None:
    """Raises WrongRun when versions of the run that was started with ``stored`` do not fit ``config``.

    A section that this software cannot read any more is passed over: what its versions are is then found out when one
    is loaded.
    """
    wrong = []
    try:
        layout = Layout(GameConfig.model_validate(stored.get("game", {}))).hash
    except (ValidationError, ValueError) as error:
        log.warning("the stored game cannot be compared: %s", error)
    else:
        mine = Layout(config.game).hash
        if layout != mine:
            wrong.append(f"its observations have layout {layout}, these have {mine} (section game)")
    try:
        model = ModelConfig.model_validate(stored.get("model", {}))
    except ValidationError as error:
        log.warning("the stored model cannot be compared: %s", error)
    else:
        for key, value in model.model_dump(exclude=set(OF_NO_VERSION)).items():
            if value != getattr(config.model, key):
                wrong.append(f"model.{key} is {value}, here it is {getattr(config.model, key)}")
    if wrong:
        raise WrongRun(f"run {config.name!r} is stored with other versions: {'; '.join(wrong)}. Give this run another "
                       "name, or the configuration that the stored one was started with")
