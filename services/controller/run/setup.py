"""Creation of a run in its store, or resumption of an existing one; used by the controller and `five train`."""

import logging
from dataclasses import replace
from typing import Any

from dota.rule_changes import REVISION, changes_since
from dota.spaces import Layout
from dota.tables import hero_ids
from five.agent.surgery.plan import MAX_PARAMETERS
from five.agent.surgery.spec import AgentSpec
from five.run.config import RunConfig
from five.run.effective import drift, overlay, record_trees
from five.run.load import ConfigError
from rapid.redaction import redact_tree
from rapid.store.record import RunRecord
from rapid.store.state import ENDED, RunState, Status

log = logging.getLogger(__name__)

RULES = "rules"  # document: the revision of the game's rules that the run plays by
FIRST_RULES = 1  # of runs without the document


def config_document(config: RunConfig) -> dict[str, Any]:
    """Return the configuration as it is stored and shown over REST, without user, password and query of any URL."""
    tree: dict[str, Any] = redact_tree(config.model_dump(mode="json", by_alias=True))
    return tree


def initial_record(config: RunConfig) -> RunRecord:
    """Return the first record of a run. Its schema is computed by the process that publishes the first version."""
    game, model = record_trees(config)
    return RunRecord(game=game, model=model, layout=Layout(config.game).hash)


def require_feasible(config: RunConfig) -> None:
    """Raise ConfigError for heroes or fields that the game lacks, and for a model that no optimizer can hold.

    These need the game's data, so the validation of the configuration leaves them open.
    """
    try:
        hero_ids(config.game)
        parameters = AgentSpec(config.game, config.model).parameters
    except ValueError as error:
        raise ConfigError(f"game: {error}") from None
    if parameters > MAX_PARAMETERS:
        raise ConfigError(f"model: {parameters:,} parameters, at most {MAX_PARAMETERS:,} are allowed: reduce "
                          "model.lstm, model.lstm_input or the other widths")


def set_up_run(state: RunState, config: RunConfig, who: str, resume: bool = False) -> None:
    """Create the run with status ``starting``, or resume an existing one. Idempotent.

    The record of an existing run takes precedence over ``config``, whose other sections become the run's. A run of an
    earlier release gets its id, and its record from its stored configuration. ``resume`` restarts a stopped or failed
    run. Raise ConfigError for a new run that `require_feasible` refuses, and if this release cannot read the record.
    """
    if state.config() is None:
        require_feasible(config)
        state.redis.hset(state.keys.documents, RULES, REVISION)
    if state.create(config_document(config), who, initial_record(config)):
        log.info("run created: %r", config.name)
        return
    state.ensure_identity()
    record = state.record()
    if record is None:
        state.adopt_record(_record_from_stored_config(state, config), who)
        record = state.record()
        assert record is not None
    document = config_document(overlay(config, record))
    if state.config() != document:
        state.set_config(document, who)
        log.info("run configuration changed: %r", config.name)
    for key, file, held in drift(config, record):
        log.warning("%s is %r in the configuration file and %r in the run's record, which takes precedence", key,
                    file, held)
    note_rule_changes(state, who)
    if resume:
        now = state.status()
        if now is not None and now.status in ENDED:
            state.transition(Status.STARTING, who, "resumed", record.epoch)
        state.events.append(who, "run.resumed")


def note_rule_changes(state: RunState, who: str) -> None:
    """Warn once, with an event, if the rules of this release's game differ from those that the run has played by."""
    stored = state.document(RULES)
    before = stored if isinstance(stored, int) else FIRST_RULES
    if before == REVISION:
        return
    for change in changes_since(before):
        log.warning("the game's rules have changed since this run last played: %s", change)
    state.events.append(who, "run.rules_changed", {"from": before, "to": REVISION})
    state.redis.hset(state.keys.documents, RULES, REVISION)


def _record_from_stored_config(state: RunState, config: RunConfig) -> RunRecord:
    """Return the record of a run that has none, from its stored configuration.

    Sections that this release cannot read come from the file; loading a version detects a mismatch.
    """
    stored = state.config() or {}
    first = initial_record(config)
    for section in ("game", "model"):
        if section not in stored:
            continue
        try:
            first = initial_record(overlay(config, replace(first, **{section: stored[section]})))
        except ConfigError as error:
            log.warning("stored section %s is unreadable, using the file's: %s", section, error)
    return first
