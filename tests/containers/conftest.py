"""A running compose project for the tests of a module, which names it (PROJECT), what it changes (CHANGES), and the
compose files that it lays over (OVER)."""

from collections.abc import Iterator

import pytest

from tests.containers.engine import Project


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Up when the module's tests begin, which go on with each other's, and gone after them."""
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
