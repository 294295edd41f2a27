"""The defaults fit a laptop's cluster, and NOTES.txt prints the requests of each values file."""

from tests.charts.asked import FILE, asked, sizes, text
from tests.charts.rendering import CHART, NAMESPACE, RELEASE, ROOT, Values, run

DEFAULTS = Values("defaults")


def test_the_defaults_fit_two_cores() -> None:
    found = asked(DEFAULTS)
    # Capacity is left for the pods of `helm test`.
    assert found.cpu <= 1.5 and found.memory <= 4 and found.gpus == 0
    laptop = asked(Values("laptop", (str(CHART / "values-laptop.yaml"),)))
    assert all(one <= other for one, other in zip(laptop, found, strict=True))


def test_the_notes_tell_each_files_size() -> None:
    assert FILE.read_text() == text(), "make generate"
    done = run("helm4", "install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client")
    notes = done.stdout.partition("\nNOTES:\n")[2]
    for line in text().splitlines():
        assert line in notes
    page, readme = (ROOT / "docs/operations.md").read_text(), (CHART / "README.md").read_text()
    for name in sizes():
        assert name.removeprefix("values") in page and f"charts/{name}" in readme


def test_larger_files_ask_for_more() -> None:
    found = sizes()
    order = ["", "values-node.yaml", "values-gpu-node.yaml", "values-gpu-cluster.yaml", "values-paper.yaml"]
    asks = [found[name] for name in order]
    assert asks == sorted(asks) and [a.gpus for a in asks] == [0, 0, 2, 71, 564]
