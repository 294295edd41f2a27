"""Revert: go back to an older version, and the branches that this leaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import redis
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Context, DryRun, Here, Operator, Viewer
from five.services.controller.http.paging import NUMBER, Limit, Offset, Slice, cut
from five.services.controller.http.problems import RETRY_SECONDS, Problem, responses
from five.services.controller.operations.document import Operation, OperationKind, SurgeryRequest
from five.services.controller.routes.surgery import NO_RUN, begin_operation
from five.services.controller.surgery.revert import CannotRevert, RevertPreview, RevertTarget, targets, undone
from rapid.blobs import BlobStore

router = APIRouter(tags=["revert"])
Version = Annotated[int, Path(ge=0, le=NUMBER, description="The version to go back to.")]
CANNOT = "The run cannot go back there, or another operation is under way."


class RevertRequest(BaseModel):
    """Where to go back to."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"to": 800, "epoch": 2, "reason": "the new patch did not help"}]})

    to: int = Field(ge=0, le=NUMBER, strict=True, description="The version to go back to.")
    warm_up_versions: int = Field(0, ge=0, le=100_000, strict=True, description="Versions at learning rate 0 after it.")
    epoch: int | None = Field(None, ge=1, le=NUMBER, strict=True, description="The run's epoch in which this was "
                              "decided; in another one it is refused. null: whichever it is.")
    reason: str = Field("", max_length=500, description="Why; kept with the operation.")


class Branch(BaseModel):
    """Versions that the newest did not come of: they were reverted, and stay for whoever asks."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "first": 801, "last": 1204, "left_by": "revert-20260101-120500-d4e5f6", "who": "ada", "at": 1789000000.0,
        "went_back_to": 800, "continued_as": 1205}]})

    first: int = Field(description="The oldest of them.")
    last: int = Field(description="The newest of them.")
    left_by: str = Field(description="The operation that left them.")
    who: str = Field(description="Who asked for it.")
    at: float = Field(description="When, seconds since 1970.")
    went_back_to: int = Field(description="The version that was gone back to.")
    continued_as: int = Field(description="The first version that came of it.")


@contextmanager
def _kept(here: Context) -> Iterator[BlobStore]:
    """Where checkpoints and versions are kept. Raises Problem: what cannot be asked is not told as empty."""
    if here.blobs is None:
        raise Problem(503, "this controller has no blob store (blobs.url)", "unavailable")
    try:
        yield here.blobs
    except (redis.RedisError, ConnectionError):
        raise  # the store's, answered for all operations alike
    except OSError as error:
        raise Problem(503, f"the blob store {here.blobs.url} does not answer: {error}", "unavailable",
                      {"Retry-After": str(RETRY_SECONDS)}) from None


def _undone(here: Context, target: int) -> RevertPreview:
    try:
        with _kept(here) as blobs:
            return undone(here.state, here.store, blobs, target)
    except CannotRevert as error:
        raise Problem(409, str(error)) from None


@router.get("/revert/targets", responses=responses(_404=NO_RUN))
def revert_targets(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> Slice[RevertTarget]:
    """Versions that the run can go back to, newest first, also those of branches that were left."""
    with _kept(here) as blobs:
        return cut(targets(here.state, here.store, blobs), offset, limit)


@router.get("/revert/{version}", responses=responses(_409="The run cannot go back there."))
def revert_preview(caller: Viewer, here: Here, version: Version) -> RevertPreview:
    """What going back to a version would undo. Nothing is changed."""
    return _undone(here, version)


@router.post("/revert", status_code=202, responses=responses(_404=NO_RUN, _409=CANNOT))
def revert(caller: Operator, here: Here, body: RevertRequest, response: Response, dry_run: DryRun = False) -> Operation:
    """Goes back to an older version: 202 and the operation. Its parameters, moments, record and schedules come back as
    the next version, in a new epoch; what came after it stays as a branch. With ``dry_run`` its steps, if it would be
    taken; GET /v1/revert/{version} lists what would be undone."""
    record = here.state.record()
    if record is None:
        raise Problem(404, f"there is no run {here.run!r} in this store yet")
    if body.epoch is not None and body.epoch != record.epoch:
        raise Problem(409, f"the run is in epoch {record.epoch}, this was decided in epoch {body.epoch}: look again at "
                           "what would be undone", "epoch-moved")
    _undone(here, body.to)
    request = SurgeryRequest(name=f"to version {body.to}", parent=record.schema, epoch=record.epoch, to_version=body.to,
                             warm_up_versions=body.warm_up_versions)
    return begin_operation(here, OperationKind.REVERT, caller.name, request, body.reason, dry_run, response)


@router.get("/branches", responses=responses(_404=NO_RUN))
def branches(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> Slice[Branch]:
    """Branches that reverts have left, newest first."""
    head, lineage = here.store.head(), here.state.lineage()
    if head is None:
        return cut([], offset, limit)
    found = [Branch(first=gone.start, last=gone.stop - 1, left_by=stretch.operation, who=stretch.who, at=stretch.at,
                    went_back_to=stretch.parent, continued_as=stretch.first)
             for stretch, gone in lineage.reverted()]
    return cut(found[::-1], offset, limit)
