"""The command line itself."""

import pytest

from five.cli.main import main


@pytest.mark.parametrize("words", [
    (), ("train",), ("eval",), ("anneal",), ("anneal", "start"), ("revert",), ("surgery",), ("surgery", "apply")])
def test_help_is_printed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    # A percent sign in a help text is argparse's own.
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(("usage: five", *words)))
