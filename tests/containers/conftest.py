"""Fixture with a running compose project for a test module. The module names it (PROJECT), its changes (CHANGES), and
further compose files (OVER)."""

from collections.abc import Iterator

import pytest

from tests.containers.engine import Project


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
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
