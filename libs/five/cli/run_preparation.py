"""Preparation of a run of `five train`: its folder, configuration and lock, checked before anything starts."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from five.agent.compute import require_device
from five.cli.origin import origin_of
from five.local.run_folder import ROOT, RunFolder, RunUnavailable, find_run, free_name, require_link_target
from five.local.run_lock import RunLock
from five.packed_agents.fine_tuning import fine_tuning_config, write_first_checkpoint
from five.packed_agents.folder import PackedAgent
from five.run.config import RunConfig
from five.run.effective import differences, record_trees
from five.run.load import ConfigError, apply_overrides, load, load_stored, rename, save, validate
from five.services.controller.run.setup import require_feasible
from rapid.redaction import redact_tree
from rapid.telemetry.tracing import require_packages

DEFAULT_PRESET = "laptop-1v1"


def prepare(preset: str | None, overrides: Sequence[str], name: str | None, resume: str | None,
            accept_changes: bool = False, root: Path = ROOT, agent: PackedAgent | None = None
            ) -> tuple[RunFolder, RunConfig, RunLock]:
    """Return the folder, configuration and lock of a new or resumed run. A new one begins with ``agent``, if given.

    Raises ConfigError, AgentUnavailable, RunUnavailable, and RunInUse while another process has the run.
    """
    if resume is None:
        config = load(preset or DEFAULT_PRESET, overrides) if agent is None else \
            fine_tuning_config(agent, preset, overrides)
        require_feasible(config)
        _require_machine(config)
        require_link_target(root)
        folder = _new_folder(config, root) if name is None else RunFolder(root / rename(config, name).name)
    else:
        for option, value in (("--preset", preset), ("--name", name), ("--from", agent and agent.path)):
            if value is not None:
                raise ConfigError(f"{option} {value}: not possible with --resume, because a run keeps its name and "
                                  "configuration; --set changes single keys")
        folder = find_run(resume or None, root)
    with ExitStack() as undo:
        lock = undo.enter_context(RunLock(folder.path))
        if resume is not None:
            stored = _load_corrected(folder.config, overrides if accept_changes else ())
            config = validate(apply_overrides(stored.model_dump(mode="json", by_alias=True), overrides), folder.name)
            _confirm_changes(stored, config, accept_changes)
            _require_machine(config)
        elif folder.config.exists():
            raise RunUnavailable(f"run {folder.name!r} exists in {root}/: continue it with `five train --resume "
                                 f"{folder.name}`, or choose another --name")
        else:
            config = rename(config, folder.name)
        folder.create()
        if agent is not None and resume is None:
            write_first_checkpoint(agent, folder, config)
        save(config, folder.config)
        if resume is None:
            named = preset or (DEFAULT_PRESET if agent is None else None)
            origin_of(config, named, overrides, agent).save(folder.origin)
        undo.pop_all()
    return folder, config, lock


def _new_folder(config: RunConfig, root: Path) -> RunFolder:
    """Create the folder of the first free name that begins with the configuration's."""
    while True:
        folder = RunFolder(root / free_name(config.name, root))
        rename(config, folder.name)  # with its number the name may be too long: refused before the folder exists
        try:
            folder.path.mkdir(mode=0o700, parents=True)
            return folder
        except FileExistsError:
            continue  # another process took the name


def _load_corrected(path: Path, overrides: Sequence[str]) -> RunConfig:
    """Return the stored configuration, with those ``overrides`` that replace values which are not valid."""
    try:
        return load_stored(path)
    except ConfigError as error:
        keys = [text.partition("=")[0].strip() for text in overrides]
        corrections = [text for text, key in zip(overrides, keys, strict=True)
                       if any(f"{key}.".startswith(f"{invalid}.") for invalid in error.paths)]
        if not corrections:
            raise
    return load_stored(path, corrections)


def _require_machine(config: RunConfig) -> None:
    """Raise ConfigError for traces without their packages and for missing devices, which services would refuse."""
    inference, optimizer = config.services.inference, config.services.optimizer
    try:
        require_packages(config.tracing)
        require_device(inference.device, "services.inference.device")
        require_device(optimizer.device, "services.optimizer.device", optimizer.optimizers)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _confirm_changes(stored: RunConfig, config: RunConfig, accepted: bool) -> None:
    """Raise ConfigError for changes that are not accepted, and for keys that the run's record holds."""
    trees: list[Mapping[str, Any]] = [c.model_dump(mode="json", by_alias=True) for c in (stored, config)]
    changes = [d for section in trees[0] for d in differences(section, trees[0][section], trees[1][section])]
    lines = "".join(f"\n  {key}: {redact_tree(old)} -> {redact_tree(new)}" for key, old, new in changes)
    held = [d for old, new, section in zip(record_trees(stored), record_trees(config), ("game", "model"), strict=True)
            for d in differences(section, old, new)]
    if held or stored.name != config.name:
        raise ConfigError(f"a run keeps its name, game and model on --resume; `five surgery` and `five anneal` change "
                          f"game and model:{lines}")
    if changes and not accepted:
        raise ConfigError(f"the configuration differs from the run's; add --accept-changes to change it:{lines}")
