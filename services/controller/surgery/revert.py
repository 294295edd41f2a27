"""Reverting to an older version: possible targets, and what a revert undoes."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from five.agent.anneal.document import FINISHED
from five.agent.config import SchedulesConfig
from five.agent.schedules import SCHEDULED, dump_schedules, load_schedules
from five.agent.standings import parse_standings, player_version
from five.services.controller.anneal.reconciler import read_anneal
from rapid.blobs import BlobStore
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.operation_blobs import preserved_folder, preserved_version
from rapid.store.parameters import ParameterStore
from rapid.store.schedules import ScheduleEdit, ScheduleStore
from rapid.store.state import RunState
from rapid.store.surgery_plans import PlanStore

SHOWN = 200  # maximum number of rows


class VersionRange(BaseModel):
    """Consecutive versions."""

    model_config = ConfigDict(extra="forbid")

    first: int = Field(description="The oldest.")
    last: int = Field(description="The newest.")


class UndoneSurgery(BaseModel):
    """A surgery that would be undone."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="The plan's name.")
    digest: str = Field(description="The plan's digest.")
    version: int | None = Field(description="The first version after it.")


class UndoneSchedule(BaseModel):
    """A schedule change that would be undone."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(description="Its id in the history.")
    name: str = Field(description="Which schedule.")
    who: str = Field(description="Name of the requesting token.")
    at: float = Field(description="Time, seconds since the epoch.")


class RevertPreview(BaseModel):
    """The effects of a revert to a version. Nothing is deleted: the abandoned branch stays in the history."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "to_version": 800, "head": 1204, "complete": True, "versions": [{"first": 801, "last": 1204}],
        "surgeries": [{"name": "wider", "digest": "4c0e2f1a" * 8, "version": 813}],
        "record": ["game.patch: '7.21d' -> '7.19'"], "schedules": [], "opponents": [810, 820], "ratings": [810, 900],
        "references": [900], "anneal": ""}]})

    to_version: int = Field(description="The version to revert to.")
    head: int = Field(description="The newest version now.")
    complete: bool = Field(description="Whether its checkpoint with Adam's moments is stored. Otherwise only the "
                           "version is, and the moments start at zero.")
    versions: list[VersionRange] = Field(description="Versions of the current lineage after it.")
    surgeries: list[UndoneSurgery] = Field(description="Plans applied after it, newest first.")
    record: list[str] = Field(description="Other changes of the run's record, by key.")
    schedules: list[UndoneSchedule] = Field(description="Schedule changes after it, newest first; with a "
                                            "checkpoint the previous schedules are restored.")
    opponents: list[int] = Field(description="Past versions removed from the opponent pool.")
    ratings: list[int] = Field(description="Rated versions after it; their ratings remain stored.")
    references: list[int] = Field(description="Those of them that are no longer rating references.")
    anneal: str = Field(description="The anneal that it ends; empty: none.")


class RevertTarget(BaseModel):
    """A version that the run can revert to."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"version": 800, "complete": True, "epoch": 2, "line": True}]})

    version: int = Field(description="Its number.")
    complete: bool = Field(description="Whether its checkpoint with Adam's moments is stored.")
    epoch: int = Field(description="Its epoch; 0: unknown.")
    line: bool = Field(
        description="Whether it is an ancestor of the newest version; false: it belongs to an abandoned branch.")


class RevertError(ValueError):
    """Error of a revert that the run cannot do; the message gives the reason."""


def complete_versions(state: RunState, blobs: BlobStore) -> set[int]:
    """Return the versions with a stored checkpoint."""
    kept = {preserved_version(name) for name in blobs.refs(preserved_folder(state.run))}
    return kept | set(CheckpointIndex(state.redis, state.run).all())


def list_targets(state: RunState, store: ParameterStore, blobs: BlobStore) -> list[RevertTarget]:
    """Return the versions that the run can revert to, newest first: checkpoints, and of the archive the versions of
    `ParameterStore.archived_records`."""
    head = store.head()
    if head is None:
        return []
    lineage, complete = state.lineage(), complete_versions(state, blobs)
    whole = {record.version for record in store.archived_records()}
    found = []
    for version in sorted((complete | whole) - {head}, reverse=True):
        segment = lineage.segment(version)
        if version < head and segment is not None:
            found.append(RevertTarget(version=version, complete=version in complete, epoch=segment.record.epoch,
                                      line=lineage.is_ancestor(version, head)))
    return found


def preview_revert(state: RunState, store: ParameterStore, blobs: BlobStore, target: int) -> RevertPreview:
    """Return what a revert to a version would undo. Raise RevertError."""
    head, record, lineage = store.head(), state.record(), state.lineage()
    if head is None or record is None:
        raise RevertError("the run has no version yet")
    if target >= head:
        raise RevertError(f"version {target}: must be below the newest version, {head}")
    segment = lineage.segment(target)
    if segment is None:
        raise RevertError(f"version {target}: older than the run's recorded lineage")
    complete = target in complete_versions(state, blobs)
    known = store.record(target)
    if not complete and (known is None or known.blob is None):
        raise RevertError(f"version {target}: stored neither as a checkpoint nor in the archive; GET "
                          "/v1/revert/targets lists the versions that are")
    gone = lineage.left_behind(target, head)
    last = lineage.ancestry(target)

    def lost(version: int) -> bool:
        return not any(version in run for run in last)

    rows, then = PlanStore(state).all(), segment.record
    surgeries = [d for d in reversed(record.chain) if d not in then.chain]
    rated = parse_standings(state.table("ratings").all())
    anneal = _anneal_after(state, target)
    return RevertPreview(to_version=target, head=head, complete=complete,
                         versions=[VersionRange(first=run.start, last=run.stop - 1) for run in gone],
                         surgeries=[UndoneSurgery(name=rows.get(d, {}).get("name", ""), digest=d,
                                                  version=rows.get(d, {}).get("version")) for d in surgeries],
                         record=[*_record_differences("game", record.game, then.game),
                                 *_record_differences("model", record.model, then.model)],
                         schedules=_schedules_after(state, known.created_at if known is not None
                                                    else segment.at),
                         opponents=sorted(int(name.removeprefix("version:")) for name in state.table("league").all()
                                          if name.startswith("version:")
                                          and lost(int(name.removeprefix("version:")))),
                         ratings=[v for v in _version_numbers([s.player for s in rated]) if lost(v)],
                         references=[v for v in _version_numbers([s.player for s in rated if s.reference])
                                     if lost(v)], anneal=anneal)


def _version_numbers(players: Sequence[str]) -> list[int]:
    return sorted({version for player in players if (version := player_version(player)) is not None})


def _anneal_after(state: RunState, target: int) -> str:
    anneal = read_anneal(state)
    live = anneal is not None and anneal.state not in FINISHED and target <= anneal.base
    return anneal.id if anneal is not None and live else ""


def _schedules_after(state: RunState, at: float) -> list[UndoneSchedule]:
    found = ScheduleStore(state).history(SHOWN)
    return [UndoneSchedule(id=r.id, name=r.values["name"], who=r.values["who"], at=r.at) for r in found if r.at > at]


def _record_differences(path: str, now: Any, then: Any) -> list[str]:
    if isinstance(now, dict) and isinstance(then, dict):
        return [line for key in sorted(now.keys() | then.keys())
                for line in _record_differences(f"{path}.{key}", now.get(key), then.get(key))]
    return [] if now == then else [f"{path}: {now!r} -> {then!r}"]


def restore_schedules(state: RunState, configured: SchedulesConfig, target: Any, who: str, operation: str) -> list[str]:
    """Restore the schedules of a checkpoint (JSON; None: unknown, no change), each with a history entry. Idempotent.
    Return the names of the changed schedules.
    """
    if target is None:
        return []
    then, changed = load_schedules(target), []
    for name in SCHEDULED:
        def edit(stored: Any, name: str = name) -> ScheduleEdit | None:
            now = configured if stored is None else load_schedules(stored)
            if getattr(now, name) == getattr(then, name):
                return None
            after = now.model_copy(update={name: getattr(then, name)})
            old, new = dump_schedules(now), dump_schedules(after)
            return ScheduleEdit(name, new, old[name], new[name])

        if ScheduleStore(state).change(edit, who, f"operation {operation}"):
            changed.append(name)
    return changed
