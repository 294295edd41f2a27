"""The in-memory Kubernetes API is frozen: it does not prove that pods work."""

from tests.charts.rendering import ROOT

# Non-empty lines of it when it was frozen. Behaviour beyond its scope is tested on a cluster.
LINES = 829


def test_it_does_not_grow() -> None:
    files = (ROOT / "tests/charts/apiserver").glob("*.py")
    assert sum(1 for file in files for line in file.read_text().splitlines() if line.strip()) <= LINES


def test_make_test_cluster_runs_the_release_tests() -> None:
    make = (ROOT / "Makefile").read_text()
    assert "\ntest-cluster:" in make and "tests/charts/test_releases.py" in make.partition("\ntest-cluster:")[2]
