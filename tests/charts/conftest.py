"""Fixtures of the chart's tests. `make test-chart` fetches helm first."""

import pytest

from tests.charts.rendering import HELMS, Values, variants


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/charts/" in item.path.as_posix():
            item.add_marker(pytest.mark.chart)


@pytest.fixture(params=variants(), ids=lambda v: v.name)
def values(request: pytest.FixtureRequest) -> Values:
    """Every set of values that is rendered."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Name of the helm version: helm4, then helm3."""
    return str(request.param)
