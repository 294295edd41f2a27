"""Making a run in its store, or going on with one that is there: what the controller and `five train` begin with."""

import logging
from typing import Any

from dota.spaces import Layout
from five.run.config import RunConfig
from five.run.effective import drift, overlay, recorded
from five.run.load import ConfigError
from rapid.store.connection import safe_url
from rapid.store.record import RunRecord
from rapid.store.state import ENDED, RunState, Status

log = logging.getLogger(__name__)


def document_of(config: RunConfig) -> dict[str, Any]:
    """The configuration as the run's store keeps it and REST shows it: without passwords."""
    tree: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    for key in ("state_url", "params_url"):
        tree["store"][key] = safe_url(tree["store"][key])
    return tree


def record_of(config: RunConfig) -> RunRecord:
    """The record that a run begins with. Its schema is worked out by whoever makes the first version."""
    game, model = recorded(config)
    return RunRecord(game=game, model=model, layout=Layout(config.game).hash)


def set_up_run(state: RunState, config: RunConfig, who: str, resume: bool = False) -> None:
    """Makes the run ``starting`` where there is none; otherwise goes on with it. Repeating it changes nothing.

    Of a run that is there the record wins over ``config``, whose other sections become the run's. A run of an earlier
    release gets its record from the configuration it is stored with. ``resume`` starts a run again that was stopped or
    has failed. Raises ConfigError when this release cannot read the record.
    """
    if state.create(document_of(config), who, record_of(config)):
        log.info("run %r is made", config.name)
        return
    record = state.record()
    if record is None:
        state.adopt_record(_record_of_earlier(state, config), who)
        record = state.record()
        assert record is not None
    document = document_of(overlay(config, record))
    if state.config() != document:
        state.set_config(document, who)
        log.info("run %r goes on with a changed configuration", config.name)
    for key, file, held in drift(config, record):
        log.warning("%s is %r in the configuration file and %r in the run, which holds", key, file, held)
    if resume:
        now = state.status()
        if now is not None and now.status in ENDED:
            state.transition(Status.STARTING, who, "resumed", record.epoch)
        state.events.append(who, "run.resumed")


def _record_of_earlier(state: RunState, config: RunConfig) -> RunRecord:
    """The record of a run that has none: what it was started with. Sections that this release cannot read are the
    file's: whether they fit the run's versions is found out when one is loaded."""
    stored = state.config() or {}
    first = record_of(config)
    for section in ("game", "model"):
        if section not in stored:
            continue
        tried = RunRecord(game=stored["game"] if section == "game" else first.game,
                          model=stored["model"] if section == "model" else first.model)
        try:
            first = record_of(overlay(config, tried))
        except ConfigError as error:
            log.warning("the stored %s cannot be read any more, the file's is taken: %s", section, error)
    return first
