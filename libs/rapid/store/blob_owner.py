"""Owner record of a run's blobs: which run, of all runs of that name, writes below the name in a blob store.

Blob names start with the run's name. Without the record, a second installation of the same name would continue from
the first one's checkpoints and remove its blobs.
"""

import json
import logging
import time

from rapid.blobs import BlobStore
from rapid.malformed import MALFORMED
from rapid.store.errors import Corrupt

log = logging.getLogger(__name__)


class BlobsOwned(ValueError):
    """The blobs of that name belong to another run."""


def claim_blobs(blobs: BlobStore, run: str, run_id: str, adopt: str = "") -> None:
    """Make the run with ``run_id`` (`RunState.identity`) the owner of the blobs below ``run``. Idempotent.

    Blobs without an owner, which an earlier release wrote, get one. Those of the owner ``adopt`` change their owner.
    Raises BlobsOwned for any other owner, Corrupt for a damaged record, OSError while the store is unavailable.
    """
    record = json.dumps({"run_id": run_id, "since": time.time()}).encode()
    found = blobs.owner(run)
    if found is None:
        if blobs.create_owner(run, record):
            return
        found = blobs.owner(run)  # another process was faster
        if found is None:  # 409 of an object store: the other process's write has not ended
            raise OSError(f"{blobs.url}: owners/{run} is being written by another process; try again")
    try:
        row = json.loads(found)
        owner, since = str(row["run_id"]), time.gmtime(float(row["since"]))
    except (*MALFORMED, OSError) as error:  # OSError: a year that the system lacks
        raise Corrupt(f"{blobs.url}: owners/{run} is damaged ({error}): remove it if no other run uses these "
                      "blobs") from None
    if owner == run_id:
        return
    if owner != adopt:
        day = time.strftime("%Y-%m-%d %H:%M UTC", since)
        raise BlobsOwned(
            f"the blobs of {run!r} in {blobs.url} belong since {day} to another run of that name, {owner}; this run is "
            f"{run_id}. Give this run another name, or another blobs.url. If that run has ended for good, continue "
            f"from its checkpoints with blobs.adopt={owner}")
    blobs.replace_owner(run, record)
    log.warning("adopted the blobs of run %s, which may no longer use them", owner)
