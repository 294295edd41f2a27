"""Which versions came out of a surgery's warm-up.

While moments settle the learning rate is 0 and every version is a clone of the last: such versions play, but they join
no opponent pool and are not rated. A version's metadata says so, under "warming".
"""

from rapid.store.archive import VersionRecord
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.parameters import ParameterStore

KEY = "warming"


class Warming:
    """Asks for each version's metadata once. Blocking; not for use from several threads at a time."""

    def __init__(self, parameters: ParameterStore) -> None:
        self._parameters = parameters
        self._known: dict[tuple[int, str], bool] = {}

    def includes(self, record: VersionRecord) -> bool:
        """Whether that version is one of a warm-up. True as well for one whose contents are gone or damaged: nothing
        can be played with it. Raises redis.RedisError."""
        key = record.version, record.digest
        if key not in self._known:
            try:
                self._known[key] = bool(self._parameters.fetch_meta(record.version).get(KEY, False))
            except (VersionMissing, Corrupt):
                return True
        return self._known[key]
