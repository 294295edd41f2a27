"""Background uploads: a slow blob store delays neither the games nor the end of the process."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import NamedTuple

log = logging.getLogger(__name__)
MAX_WAITING = 8  # a version is rated in minutes, so that only a blob store that is down fills the queue


class _Upload(NamedTuple):
    run: Callable[[], None]
    discard: Callable[[], None]
    ended: Future[None]


class UploadQueue:
    """Uploads, run one at a time in their order on a daemon thread. Thread-safe.

    At most MAX_WAITING uploads wait; the oldest beyond it is discarded.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Upload] = deque()
        self._running: _Upload | None = None  # None: no thread

    def submit(self, run: Callable[[], None], discard: Callable[[], None]) -> Future[None]:
        """Queue ``run``. Never blocks. Return a future that is done when the upload has ended or is discarded.

        ``discard`` is called instead of ``run`` for an upload that is discarded.
        """
        upload = _Upload(run, discard, Future())
        upload.ended.set_running_or_notify_cancel()  # it cannot be cancelled
        surplus = None
        with self._lock:
            if self._running is None:
                self._running = upload
                threading.Thread(target=self._run, args=(upload,), name="uploads", daemon=True).start()
            else:
                self._waiting.append(upload)
                surplus = self._waiting.popleft() if len(self._waiting) > MAX_WAITING else None
        if surplus is not None:
            log.warning("the oldest of %d uploads that wait for the blob store is discarded", MAX_WAITING + 1)
            _discard(surplus)
        return upload.ended

    def close(self, seconds: float) -> None:
        """Wait up to ``seconds`` for all uploads, then discard those that have not begun. Blocking."""
        with self._lock:
            uploads = [*self._waiting, *([] if self._running is None else [self._running])]
        unfinished = wait([upload.ended for upload in uploads], max(seconds, 0.0)).not_done
        if not unfinished:
            return
        with self._lock:
            discarded = list(self._waiting)
            self._waiting.clear()
        log.warning("%d upload(s) to the blob store did not end within %.0f s and are lost", len(unfinished), seconds)
        for upload in discarded:
            _discard(upload)

    def _run(self, upload: _Upload | None) -> None:
        while upload is not None:
            try:
                upload.run()
            except Exception:  # an error costs the upload, not the rating or the match
                log.exception("an upload to the blob store failed")
            upload.ended.set_result(None)
            with self._lock:
                self._running = upload = self._waiting.popleft() if self._waiting else None


def _discard(upload: _Upload) -> None:
    upload.discard()
    upload.ended.set_result(None)
