"""Every file, test, link, command, target and module named in a page or a message exists."""

from pathlib import Path

import pytest

from tests.docs.named import code_of, quoted, slugs, strings_of, wrong_links, wrong_names
from tests.repository import ROOT, sources

PAGES = sorted(sources(".md"))


def identity(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_names_in_pages_exist(page: Path) -> None:
    wrong = [*wrong_links(page), *wrong_names(code_of(page.read_text()), code_of(page.read_text()), page.parent)]
    assert not wrong, "\n".join(wrong)


def test_names_in_messages_and_docstrings_exist() -> None:
    texts = {path: strings_of(path.read_text()) for path in sources(".py")
             if path.relative_to(ROOT).parts[0] != "tests"}
    wrong = [f"{identity(path)} {what}" for path, text in texts.items()
             for what in wrong_names(text, quoted(text), path.parent)]
    assert not wrong, "\n".join(wrong)


def test_names_in_chart_and_scripts_exist() -> None:
    texts = {path: path.read_text() for path in sources(".txt", ".tpl", ".sh", ".yaml", ".proto", ".toml")
             if path.relative_to(ROOT).parts[0] != "tests"}
    wrong = [f"{identity(path)} {what}" for path, text in texts.items()
             for what in wrong_names(text, quoted(text), path.parent)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", [
    "docs/no-such-page.md", "`libs/five/agent/scaling.py`", "tests/docs/named.py::test_nothing", "five dance",
    "five train --wings", "five surgery plan --wings", "make coffee", "python -m five.cli.nothing",
    "x=$(five frobnicate a)",
    "python3 check_data.py",
])
def test_missing_names_are_reported(text: str) -> None:
    assert len(list(wrong_names(text, text))) == 1


@pytest.mark.parametrize("text", [
    "docs/design.md", "five train --resume NAME", "make test", "python -m tools.metrics_page",
    "charts/ci/*-values.yaml", "five surgery plan | check | apply", "runs/x/report.html", "helm install five ./charts",
    "make env images", "python3 -m pytest x", "make MINUTES=5 train",
])
def test_existing_names_are_accepted(text: str) -> None:
    assert list(wrong_names(text, text)) == []


def test_commands_in_messages_are_in_backquotes() -> None:
    assert list(wrong_names("", quoted("wait; `five dance` does, or make haste"))) == [
        "says five dance, an unknown command"]


def test_links_and_anchors(tmp_path: Path) -> None:
    assert slugs("# A `b` (c)\n## A b c\n```\n# not one\n```\n") == {"a-b-c", "a-b-c-1"}
    (tmp_path / "other.md").write_text("# There\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#there) [b](other.md#gone) [c](gone.md) [d](#here) [e](https://example.org)\n# Here\n")
    assert len(list(wrong_links(page))) == 2


def test_texts_of_a_module() -> None:
    assert set(strings_of('x = f"five {n} b"\nraise ValueError("docs/" "x")').split("\n")) >= {"docs/x", "five X b"}
