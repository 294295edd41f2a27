"""Routes below /v1/versions: published versions."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Context, ContextDep, Viewer
from five.services.controller.http.paging import (
    MAX_SAFE_INTEGER,
    AfterVersion,
    BeforeVersion,
    Limit,
    Page,
    make_page,
    require_single_cursor,
)
from five.services.controller.http.problems import Problem, blob_store_errors, responses
from rapid.store.archive import VersionRecord
from rapid.store.errors import VersionMissing

router = APIRouter(tags=["versions"])
PAGE = 500  # records per round trip, at least
MAX_GAP = 100_000  # maximum gap of missing version numbers that a page searches
_BLOB: dict[str, Any] = {"sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                         "bytes": 5242880}


class ArchivedBlob(BaseModel):
    """Location of an archived version."""

    sha256: str = Field(description="Its name in the blob store: the SHA-256 of its contents.")
    bytes: int = Field(description="Its size in bytes.")


class Version(BaseModel):
    """Record of a version."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "version": 1204, "digest": "8d0e6d3f1f6f4a6e9a0c5e0f6f1b2c3d", "bytes": 5242880, "created_at": 1789000000.0,
        "blob": _BLOB}]})

    version: int = Field(description="Its number.")
    digest: str = Field(description="Digest of its contents; number and digest together are its identity.")
    bytes: int = Field(description="Size of its arrays.")
    created_at: float = Field(description="When it was published, seconds since the epoch.")
    blob: ArchivedBlob | None = Field(description="Its archived copy; null: none yet.")


class VersionDetails(Version):
    """A version and its publisher's metadata."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "version": 1204, "digest": "8d0e6d3f1f6f4a6e9a0c5e0f6f1b2c3d", "bytes": 5242880, "created_at": 1789000000.0,
        "blob": _BLOB, "meta": {"schema": "five-1", "reward_std": 0.7}}]})

    meta: dict[str, Any] | None = Field(description="Its metadata; null if the version is no longer stored.")


def _version(record: VersionRecord) -> dict[str, Any]:
    blob = None if record.blob is None else {"sha256": record.blob.digest, "bytes": record.blob.size}
    return {"version": record.version, "digest": record.digest, "bytes": record.bytes,
            "created_at": record.created_at, "blob": blob}


def _read_records(context: Context, head: int, limit: int, after: int | None,
                  before: int | None) -> list[VersionRecord]:
    """Return the records from a cursor on. Numbers have gaps: reverts and crashes leave some, and old versions that are
    not archived have no record."""
    found: list[VersionRecord] = []
    step = max(limit, PAGE)
    if after is not None:
        at, end, last = after + 1, head + 1, after
        while at < end and len(found) < limit and at <= last + MAX_GAP:
            found += context.store.records_of(range(at, min(at + step, end)))
            at, last = at + step, found[-1].version if found else after
    else:
        at = start = head if before is None else min(before - 1, head)
        while at >= 0 and len(found) < limit and at > start - MAX_GAP:
            found += context.store.records_of(range(at, max(at - step, -1), -1))
            at, start = at - step, found[-1].version - 1 if found else start
    return found[:limit]


@router.get("/versions")
def versions(caller: Viewer, context: ContextDep, limit: Limit = 100, after: AfterVersion = None,
             before: BeforeVersion = None) -> Page[Version]:
    """Return the published versions, newest first: the newest 10,000 and archived ones."""
    require_single_cursor(after, before)
    head = context.store.head()
    records = [] if head is None else _read_records(context, head, limit, after, before)
    cursors = (None if c is None else str(c) for c in (after, before))
    return make_page([Version.model_validate(_version(r)) for r in records], [str(r.version) for r in records], limit,
                     *cursors)


@router.get("/versions/{version}", responses=responses(_404="There is no record of that version."))
async def version(caller: Viewer, context: ContextDep,
                  version: Annotated[int, Path(ge=0, le=MAX_SAFE_INTEGER)]) -> VersionDetails:
    """Return a version's record and metadata."""
    return await context.read_blobs(_details, context, version)


def _details(context: Context, version: int) -> VersionDetails:
    record = context.store.record(version)
    if record is None:
        raise Problem(404, f"version {version} was never published, or is old and not archived")
    try:
        with blob_store_errors():
            meta: dict[str, Any] | None = context.store.fetch_meta(version)
    except VersionMissing:
        meta = None
    return VersionDetails.model_validate({**_version(record), "meta": meta})
