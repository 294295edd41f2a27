"""OCI registry on loopback: Debian's docker-registry."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from tests.tcp_forwarder import free_port


@contextmanager
def oci_registry(folder: Path) -> Iterator[str]:
    """Run a registry that stores in ``folder`` and yield its host:port. Raise FileNotFoundError without the program."""
    program = shutil.which("docker-registry")
    if program is None:
        raise FileNotFoundError("docker-registry is missing: apt-get install docker-registry")
    address = f"127.0.0.1:{free_port()}"
    config = folder / "registry.yml"
    config.write_text(yaml.safe_dump({"version": "0.1", "log": {"level": "error"}, "http": {"addr": address},
                                      "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}}}))
    with (folder / "registry.log").open("w") as log:
        process = subprocess.Popen([program, "serve", config], stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                if httpx.get(f"http://{address}/v2/", trust_env=False).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        else:
            raise AssertionError((folder / "registry.log").read_text())
        yield address
    finally:
        process.terminate()
        process.wait(60)
