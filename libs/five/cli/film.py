"""Files of films: MP4 by ffmpeg, GIF by Pillow."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from imageio_ffmpeg import get_ffmpeg_exe
from PIL import Image

from dota.picture import Picture

SUFFIXES = (".gif", ".mp4")
QUALITY = 15  # constant rate factor of H.264: 0 is lossless, 51 the smallest file


def write_film(target: Path, pictures: Iterator[Picture], rate: int) -> None:
    """Write pictures, uint8 [height, width, 3] and at least one, as a film with ``rate`` of them a second.

    After an error or Ctrl-C an earlier film remains. Raises OSError, and what ``pictures`` raises.
    """
    partial = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")  # the suffix selects the format
    try:
        (_write_gif if target.suffix == ".gif" else _write_mp4)(partial, pictures, rate)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _write_gif(path: Path, pictures: Iterator[Picture], rate: int) -> None:
    images = map(Image.fromarray, pictures)
    # The images are read one by one: a list of them takes 1.6 MB each.
    next(images).save(path, save_all=True, append_images=images, duration=1000 / rate)


def _write_mp4(path: Path, pictures: Iterator[Picture], rate: int) -> None:
    first = next(pictures)
    height, width = first.shape[:2]
    command = [get_ffmpeg_exe(), "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
               "-r", str(rate), "-i", "-", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", str(QUALITY), str(path)]
    # In a session of its own, Ctrl-C in the terminal does not reach it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as ffmpeg:
        assert ffmpeg.stdin is not None and ffmpeg.stderr is not None
        try:
            for picture in chain((first,), pictures):
                ffmpeg.stdin.write(picture.tobytes())
        except BrokenPipeError:
            pass  # it has ended
        except BaseException:
            ffmpeg.kill()
            raise
        finally:
            with suppress(BrokenPipeError):
                ffmpeg.stdin.close()
        errors = ffmpeg.stderr.read().decode("utf-8", "replace").splitlines()
    if ffmpeg.returncode != 0:
        reason = re.sub(r"^\[[^]]*] ", "", errors[-1]) if errors else f"exit status {ffmpeg.returncode}"
        raise OSError(f"the film cannot be written by ffmpeg: {reason}")
