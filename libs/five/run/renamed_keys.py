"""Configuration keys that were renamed or removed: refused in files and overrides, migrated in stored trees."""

from collections.abc import Mapping
from typing import Any

SINCE = "0.2.0"
# Old path to new path, both dotted. A section is renamed with everything below it. An item of a list has no number:
# "schedules.learning_rate.ramps[].start".
RENAMED: Mapping[str, str] = {
    "buffer.draw": "buffer.sampling",
    "compute.bfloat16_sums": "compute.bfloat16_accumulation",
    "compute.float32_products": "compute.float32_matmul_precision",
    "league.in_play_minutes": "league.active_minutes",
    "league.past_in_play": "league.active_past_versions",
    "lifecycle.quiet_seconds": "lifecycle.pause_timeout_seconds",
    "lifecycle.stuck_seconds": "lifecycle.watchdog_seconds",
    "rating.always": "rating.required_references",
    "rating.games_of_first": "rating.first_rating_games",
    "rating.nearby": "rating.max_reference_distance",
    "services.controller.stay": "services.controller.keep_serving",
    "services.evaluator.share_guard": "services.evaluator.guard_share",
    "services.inference.spread_seconds": "services.inference.load_jitter_seconds",
    "services.optimizer.drawing_threads": "services.optimizer.collate_threads",
    "services.play.behind_kibibytes": "services.play.client_backlog_kibibytes",
    "services.play.empty_seconds": "services.play.abandon_seconds",
    "services.play.seat_seconds": "services.play.seat_reservation_seconds",
    "services.play.watching": "services.play.max_connections",
    "services.rollout.optimizers_each": "services.rollout.optimizers_per_process",
    "services.rollout.scripted_fraction": "schedules.scripted_fraction.initial",
}
# Removed keys, with the reason or the replacement.
REMOVED: Mapping[str, str] = {
    "league.remembered_games": "it had no effect, because Redis ignores repeated reports of a game",
    "rpc.token_file": "every caller has its own secret: set rpc.caller_secret_file, and rpc.callers_file of servers",
    "services.evaluator.idle_seconds": "set services.evaluator.cpu_share to limit the evaluator",
    "services.evaluator.share_scripted": "list bots in rating.required_references to play them at every rating",
    "services.optimizer.rendezvous": "optimizers meet through the state's Redis",
    "services.inference.past_versions": "set services.inference.past_mebibytes to limit past versions in memory",
}


def refusal(path: str, renamed: Mapping[str, str] | None = None) -> str | None:
    """Return the error of an unknown key's path; None if it was neither renamed nor, in a run, removed."""
    table = RENAMED if renamed is None else renamed
    if renamed is None and (reason := REMOVED.get(path)) is not None:
        return f'key "{path}" was removed in {SINCE}: {reason}'
    if (new := _renamed(path, table)) is not None:
        return f'key "{path}" was renamed to "{new}" in {SINCE}'
    below = {old: new for old, new in table.items() if old.startswith(f"{path}.")}
    if below:
        names = ", ".join(f'"{old}" to "{new}"' for old, new in below.items())
        return f'keys of section "{path}" were renamed in {SINCE}: {names}'
    return None


def migrate(tree: Mapping[str, Any], renamed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a copy of a run's stored configuration with every old key under its new path, without removed keys.

    A new key that is present keeps its value. The rest of the tree is unchanged; unknown keys stay for the validation.
    """
    table = RENAMED if renamed is None else renamed
    result: dict[str, Any] = copy_tree(tree)
    for old, new in table.items():
        _move(result, old.split("."), new.split("."))
    for path in REMOVED:
        *sections, key = path.split(".")
        section: Any = result
        for name in sections:
            section = section.get(name) if isinstance(section, dict) else None
        if isinstance(section, dict):
            section.pop(key, None)
    return result


def _renamed(path: str, table: Mapping[str, str]) -> str | None:
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        if (new := table.get(".".join(parts[:end]))) is not None:
            return ".".join([new, *parts[end:]])
    return None


def _move(tree: dict[str, Any], old: list[str], new: list[str]) -> None:
    """Move one value. Paths of list items share the part up to the last ``[]``."""
    while old[0] == new[0] and len(old) > 1 and len(new) > 1:
        name = old[0].removesuffix("[]")
        below = tree.get(name)
        if old[0].endswith("[]"):
            for item in below if isinstance(below, list) else ():
                if isinstance(item, dict):
                    _move(item, old[1:], new[1:])
            return
        if not isinstance(below, dict):
            return
        tree, old, new = below, old[1:], new[1:]
    source = tree
    for name in old[:-1]:
        if not isinstance(source := source.get(name), dict):  # type: ignore[assignment]
            return
    if old[-1] not in source:
        return
    value = source.pop(old[-1])
    target = tree
    for name in new[:-1]:
        target = target.setdefault(name, {})
        if not isinstance(target, dict):
            return
    present = target.get(new[-1])
    if isinstance(value, dict) and isinstance(present, dict):
        target[new[-1]] = {**value, **present}
    else:
        target.setdefault(new[-1], value)


def copy_tree(value: Any) -> Any:
    """Return a copy of JSON values: mappings become dictionaries, and lists and tuples become lists."""
    if isinstance(value, Mapping):
        return {key: copy_tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_tree(item) for item in value]
    return value
