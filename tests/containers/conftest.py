"""Fixtures: the images of this checkout, and a running compose project for a test module. The module names the project
(PROJECT), its changes (CHANGES), and further compose files (OVER)."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.containers.engine import DOCKER, ROOT, Project


@pytest.fixture(scope="session")
def built() -> str:
    """Build all images and return the table of their sizes."""
    done = subprocess.run(["deploy/images/build.sh"], cwd=ROOT, env={**os.environ, "DOCKER": DOCKER}, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    print(done.stdout)
    return done.stdout


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, built: str) -> Iterator[Project]:
    """Compose project that starts before a module's tests, which build on each other, and is removed after them."""
    secrets = tmp_path_factory.mktemp("secrets") / "env"
    over = getattr(request.module, "OVER", ("smoke.yml",))
    project = Project(request.module.PROJECT, secrets, getattr(request.module, "CHANGES", None), over)
    if "tls.yml" in over:
        project.certify()
    project.down()
    try:
        project.up()
        yield project
    finally:
        project.down()
