"""Files of films that ffmpeg cannot write."""

from pathlib import Path

import numpy as np
import pytest

from five.cli.film import write_film


@pytest.mark.parametrize("reads", ["cat >/dev/null; ", ""], ids=["at its end", "at its start"])
def test_failure_of_ffmpeg_is_an_error(reads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, which ffmpeg notices when it closes the film or earlier."""
    ffmpeg, target = tmp_path / "ffmpeg", tmp_path / "game.mp4"
    ffmpeg.write_text(f"#!/bin/sh\n{reads}echo '[out#0/mp4 @ 0x5] Error closing file: No space left on device' >&2\n"
                      "exit 228\n")
    ffmpeg.chmod(0o755)
    target.write_text("the earlier film")
    monkeypatch.setattr("five.cli.film.get_ffmpeg_exe", lambda: str(ffmpeg))
    with pytest.raises(OSError, match="by ffmpeg: Error closing file: No space left on device$"):
        write_film(target, iter(np.zeros((100, 48, 48, 3), np.uint8)), 25)
    assert target.read_text() == "the earlier film" and len(list(tmp_path.iterdir())) == 2
