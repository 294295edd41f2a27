"""What can be wrong with a run's store."""


class VersionMissing(LookupError):
    """A version is neither in Redis nor in the blob store."""


class VersionConflict(ValueError):
    """A version exists already with other contents; versions never change."""


class Corrupt(RuntimeError):
    """Stored bytes are not those that were written."""


class IllegalTransition(ValueError):
    """The run cannot go from its present status to the one asked for."""


class StoreUnreachable(ConnectionError):
    """No Redis answers at the configured address."""


class StoreRefused(StoreUnreachable):
    """A Redis answers, and does not take the password: waiting does not help."""
