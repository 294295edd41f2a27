"""Routes for reverting the run to an older version, and for the branches that reverts leave."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Context, ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.paging import MAX_SAFE_INTEGER, Limit, Offset, Slice, make_slice
from five.services.controller.http.problems import Problem, blob_store_errors, responses
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest
from five.services.controller.routes.surgery import NO_RUN, begin_operation
from five.services.controller.surgery.revert import (
    RevertError,
    RevertPreview,
    RevertTarget,
    list_targets,
    preview_revert,
)
from rapid.blobs import BlobStore

router = APIRouter(tags=["revert"])
Version = Annotated[int, Path(ge=0, le=MAX_SAFE_INTEGER, description="The version to revert to.")]
CANNOT = "The run cannot revert to this version, or another operation is active."


class RevertRequest(BaseModel):
    """The version to revert to."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"to": 800, "epoch": 2, "reason": "the new patch did not help"}]})

    to: int = Field(ge=0, le=MAX_SAFE_INTEGER, strict=True, description="The version to revert to.")
    warm_up_versions: int = Field(0, ge=0, le=100_000, strict=True,
                                  description="Versions with learning rate 0 after it.")
    epoch: int | None = Field(None, ge=1, le=MAX_SAFE_INTEGER, strict=True,
                              description="The run's epoch in which this was "
                              "decided; the request fails in another one. null: any.")
    reason: str = Field("", max_length=500, description="Reason; stored with the operation.")


class Branch(BaseModel):
    """Versions that are not ancestors of the newest version, because they were reverted. They remain available."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "first": 801, "last": 1204, "left_by": "revert-20260101-120500-d4e5f6", "who": "ada", "at": 1789000000.0,
        "went_back_to": 800, "continued_as": 1205}]})

    first: int = Field(description="The oldest version.")
    last: int = Field(description="The newest version.")
    left_by: str = Field(description="The operation that reverted them.")
    who: str = Field(description="Name of the requesting token.")
    at: float = Field(description="Time of the revert, seconds since the epoch.")
    went_back_to: int = Field(description="The version that was reverted to.")
    continued_as: int = Field(description="The first version after the revert.")


def _require_blobs(context: Context) -> BlobStore:
    if context.blobs is None:
        raise Problem(503, "this controller has no blob store (blobs.url)", "unavailable")
    return context.blobs


def _targets(context: Context) -> list[RevertTarget]:
    with blob_store_errors():
        return list_targets(context.state, context.store, _require_blobs(context))


def _preview(context: Context, target: int) -> RevertPreview:
    try:
        with blob_store_errors():
            return preview_revert(context.state, context.store, _require_blobs(context), target)
    except RevertError as error:
        raise Problem(409, str(error)) from None


@router.get("/revert/targets", responses=responses(_404=NO_RUN))
async def revert_targets(caller: Viewer, context: ContextDep, limit: Limit = 100,
                         offset: Offset = 0) -> Slice[RevertTarget]:
    """Return the versions that the run can revert to, newest first, including those of abandoned branches."""
    return make_slice(await context.read_blobs(_targets, context), offset, limit)


@router.get("/revert/{version}", responses=responses(_409="The run cannot revert to this version."))
async def revert_preview(caller: Viewer, context: ContextDep, version: Version) -> RevertPreview:
    """Return what a revert to a version would undo. Nothing is changed."""
    return await context.read_blobs(_preview, context, version)


@router.post("/revert", status_code=202, responses=responses(_404=NO_RUN, _409=CANNOT))
async def revert(caller: Operator, context: ContextDep, body: RevertRequest, response: Response,
                 dry_run: DryRun = False) -> Operation:
    """Revert to an older version: 202 and the operation.

    Its parameters, moments, record and schedules become the next version, in a new epoch. Later versions remain as a
    branch. With ``dry_run`` the operation's steps are returned; GET /v1/revert/{version} lists what would be undone.
    """
    return await context.read_blobs(_begin_revert, context, caller.name, body, dry_run, response)


def _begin_revert(context: Context, who: str, body: RevertRequest, dry_run: bool, response: Response) -> Operation:
    record = context.state.record()
    if record is None:
        raise Problem(404, f"there is no run {context.run!r} in this store yet")
    if body.epoch is not None and body.epoch != record.epoch:
        raise Problem(409, f"the run is in epoch {record.epoch}, the request names epoch {body.epoch}: read the "
                           "revert's preview again", "stale-epoch")
    _preview(context, body.to)
    request = OperationRequest(name=f"to version {body.to}", parent=record.schema, epoch=record.epoch,
                               to_version=body.to, warm_up_versions=body.warm_up_versions)
    return begin_operation(context, OperationKind.REVERT, who, request, body.reason, dry_run, response)


@router.get("/branches", responses=responses(_404=NO_RUN))
def branches(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> Slice[Branch]:
    """Return the branches that reverts have left, newest first."""
    head, lineage = context.store.head(), context.state.lineage()
    if head is None:
        return make_slice([], offset, limit)
    found = [Branch(first=reverted.start, last=reverted.stop - 1, left_by=segment.operation, who=segment.who,
                    at=segment.at, went_back_to=segment.parent, continued_as=segment.first)
             for segment, reverted in lineage.reverted()]
    return make_slice(found[::-1], offset, limit)
