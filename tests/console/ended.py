"""Ended run served from a copy of its folder by a real controller, for pictures of real numbers. The folder is not
changed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from five.services.controller.console.static_files import BUILT, ConsoleSite
from rapid.blobs import BlobStore
from rapid.embedded_redis import EmbeddedRedis
from tests.services.live_controller import LiveController, live


@contextmanager
def ended(folder: Path) -> Iterator[LiveController]:
    """Serve the run in ``folder``, named like it. Raises ValueError if the folder holds no run."""
    source = folder / "redis" / "state"
    if not source.is_dir():
        raise ValueError(f"{folder} is not the folder of a run: it has no redis/state")
    with TemporaryDirectory() as copy:
        shutil.copytree(source, f"{copy}/redis", ignore=shutil.ignore_patterns("*.sock", "*.acl"))
        shutil.copytree(folder / "blobs", f"{copy}/blobs")
        blobs = BlobStore(f"{copy}/blobs")
        with (EmbeddedRedis(Path(copy) / "redis", append_only=True).start() as store,
              live(store.url, create=False, run=folder.name, blobs=blobs, site=ConsoleSite(BUILT)) as rest):
            yield rest
