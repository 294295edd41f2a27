"""Names of a run's Redis keys. All begin with ``five:<run>:``."""

import re

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Keys:
    """Key names of one run. Raises ValueError for a run name that could leave the run's own keys."""

    def __init__(self, run: str) -> None:
        if not _RUN.fullmatch(run):
            raise ValueError(f"run name {run!r}: only letters, digits, '.', '_' and '-' are allowed, at most 128")
        self.run = run
        self.prefix = f"five:{run}:"
        # State.
        self.head = self.prefix + "head"
        self.versions = self.prefix + "versions"
        self.temporary = self.prefix + "versions:passing"
        self.pins = self.prefix + "versions:pins"
        self.staged = self.prefix + "versions:staged"
        self.heads_channel = self.prefix + "heads"
        self.status = self.prefix + "status"
        self.status_channel = self.prefix + "statuses"
        self.documents = self.prefix + "documents"
        self.anneal = self.prefix + "anneal"
        self.counters = self.prefix + "counters"
        self.events = self.prefix + "events"
        self.events_removed = self.prefix + "events-removed"
        self.libraries = self.prefix + "libraries"
        self.idempotency_index = self.prefix + "idempotency-index"
        self.record = self.prefix + "record"
        self.lineage = self.prefix + "lineage"
        self.publisher = self.prefix + "publisher"
        self.pause = self.prefix + "pause"
        self.checkpoints = self.prefix + "checkpoints"
        self.checkpoint_key = self.prefix + "checkpoint-key"
        self.preserved = self.prefix + "checkpoints:preserved"
        self.watched = self.prefix + "watched"
        self.live_channel = self.prefix + "live"
        self.rehearser = self.prefix + "rehearser"
        self.rehearsing = self.prefix + "rehearsing"
        # Parameters.
        self.stored_versions = self.prefix + "params:versions"

    def manifest(self, version: int, digest: str) -> str:
        """Return the manifest key of a stored version."""
        return f"{self.prefix}params:{version}:{digest}:manifest"

    def chunk(self, version: int, digest: str, index: int) -> str:
        """Return the key of a version's chunk. It contains the digest, so two publishers never mix their chunks."""
        return f"{self.prefix}params:{version}:{digest}:{index}"

    def table(self, name: str) -> str:
        """Return the key of a hash of JSON values."""
        return f"{self.prefix}table:{name}"

    def table_log(self, name: str) -> str:
        """Return the key of a replicated table's log of changes."""
        return f"{self.prefix}log:{name}"

    def series(self, kind: str) -> str:
        """Return the key of a time series of JSON records."""
        return f"{self.prefix}series:{kind}"

    def events_of(self, writer: str) -> str:
        """Return the key of a service's events until the controller has merged them."""
        return f"{self.prefix}events:{writer}"

    def applied(self, token: str) -> str:
        """Return the key that an applied transaction sets, by the token of its call."""
        return f"{self.prefix}applied:{token}"

    def once(self, name: str) -> str:
        """Return the key of a table's idempotency keys."""
        return f"{self.prefix}once:{name}"

    def once_in(self, kind: str) -> str:
        """Return the key of a series' idempotency keys."""
        return f"{self.prefix}once-in:{kind}"

    def idempotency(self, digest: str) -> str:
        """Return the key of a REST change's stored response, by the digest of its idempotency key and caller."""
        return f"{self.prefix}idempotency:{digest}"

    def login(self, digest: str) -> str:
        """Return the key of a one-time login link, by the digest of its code."""
        return f"{self.prefix}login:{digest}"

    def session(self, digest: str) -> str:
        """Return the key of a browser session, by the digest of its cookie."""
        return f"{self.prefix}session:{digest}"

    def lease(self, kind: str, identity: str) -> str:
        """Return the key of an instance's lease."""
        return f"{self.prefix}lease:{kind}:{identity}"

    def leases(self, kind: str) -> str:
        """Return the key of a kind's live instances by lease expiry."""
        return f"{self.prefix}leases:{kind}"

    def ordinals(self, kind: str) -> str:
        """Return the key of the ordinals of a kind's instances."""
        return f"{self.prefix}ordinals:{kind}"

    def rendezvous(self, group: str) -> str:
        """Return the key of a process group's rendezvous."""
        return f"{self.prefix}rendezvous:{group}"

    def quiet(self, kind: str, identity: str) -> str:
        """Return the key of an instance's idle acknowledgement."""
        return f"{self.prefix}quiet:{kind}:{identity}"

    def quiet_names(self, kind: str) -> str:
        """Return the key of a kind's instances that were enrolled in a pause or have acknowledged it."""
        return f"{self.prefix}quiet-names:{kind}"
