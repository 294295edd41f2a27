"""Draft analysis for the REST API, with cached tables, training-game statistics and solved trees."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from dota.registry import load
from five.agent.draft.advice import DraftAdvice, advise
from five.agent.draft.evidence import EVIDENCE_GAMES, Calibration, DraftEvidence
from five.agent.draft.leaves import LeafTable
from five.agent.draft.summary import summarize_draft
from five.run.draft_tables import DraftTableStore
from rapid.blobs import BlobMissing, BlobStore
from rapid.store.errors import Corrupt
from rapid.store.series import Series

PAGE = 1000  # game records per read
CACHED_TABLES = 2
CACHED_ADVICE = 256


class DraftAnalyzer:
    """Draft analysis of one run. Blocking and thread-safe; one thread at a time solves."""

    def __init__(self, run: str, blobs: Callable[[], BlobStore | None], series: Series) -> None:
        self._run = run
        self._blobs = blobs
        self._series = series
        self._lock = threading.Lock()
        self._leaves: OrderedDict[str, LeafTable] = OrderedDict()  # by digest
        # By the table's digest, picks, bans and order.
        self._advice: OrderedDict[tuple[Any, ...], DraftAdvice] = OrderedDict()
        self._evidence: DraftEvidence | None = None
        self._last = ""  # id of the last counted game

    @property
    def _tables(self) -> DraftTableStore | None:
        blobs = self._blobs()
        return None if blobs is None else DraftTableStore(blobs, self._run)

    def tables(self) -> list[dict[str, Any]]:
        """Return ``name``, ``heroes``, ``team``, ``shared`` and ``facts`` of each table, newest version first."""
        tables, found = self._tables, []
        if tables is None:
            return []
        for name in tables.names():
            try:
                found.append({"name": name, **tables.about(name)})
            except (BlobMissing, Corrupt, ValueError):
                continue  # removed concurrently, or not a table
        return found

    def draft(self, name: str | None, radiant: Sequence[str], dire: Sequence[str], banned: Sequence[str], order: str
              ) -> dict[str, Any]:
        """Return the analysis of a draft by the named table, or by the newest one, with the table's name as ``table``.

        Raise BlobMissing without a table, and five.agent.draft.pick_order.DraftError for an invalid draft.
        """
        tables = self._tables
        if tables is None:
            raise BlobMissing("this controller has no blob store (blobs.url)")
        if name is None:
            name = next(iter(tables.names()), None)
            if name is None:
                raise BlobMissing(
                    "there is no draft table yet: create one with `five draft --make`. The evaluator "
                    "does so for rated versions with a small hero pool")
        with self._lock:
            digest = tables.digest(name)
            leaves = self._table(tables, name, digest)
            key = digest, *(tuple(sorted(names)) for names in (radiant, dire, banned)), order
            if key not in self._advice:
                self._advice[key] = advise(leaves, radiant, dire, banned, order)
                while len(self._advice) > CACHED_ADVICE:
                    self._advice.popitem(last=False)
            found = summarize_draft(leaves, self._updated_evidence(), self._advice[key], radiant, dire, banned)
            return {**found, "table": name}

    def reliability(self) -> Calibration:
        """Return the calibration of the win head on the recorded training games."""
        with self._lock:
            return self._updated_evidence().calibration()

    def _table(self, tables: DraftTableStore, name: str, digest: str) -> LeafTable:
        if digest not in self._leaves:
            self._leaves[digest] = tables.read(name)
            while len(self._leaves) > CACHED_TABLES:
                self._leaves.popitem(last=False)
        self._leaves.move_to_end(digest)
        return self._leaves[digest]

    def _updated_evidence(self) -> DraftEvidence:
        if self._evidence is None:
            evidence = DraftEvidence(load().heroes)
            newest, before = "", ""
            for _ in range(EVIDENCE_GAMES // PAGE):
                page = self._series.latest("games", PAGE, before)
                for record in page:
                    evidence.add(record.values)
                if page:
                    newest, before = newest or page[0].id, page[-1].id
                if len(page) < PAGE:
                    break
            self._evidence, self._last = evidence, newest
        while page := self._series.following("games", self._last, PAGE):
            for record in page:
                self._evidence.add(record.values)
            self._last = page[-1].id
        return self._evidence
