"""Table of image sizes by layer: ``python sizes.py DOCKER BASE IMAGE...``; the base image's layers share one line."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

SHOWN_CHARACTERS = 88


class Layer(NamedTuple):
    """Image layer: size in bytes, and the instruction that created it."""

    size: int
    made_by: str


def layers(docker: str, image: str) -> list[Layer]:
    """Return the layers of an image, newest first, including empty ones. Raises CalledProcessError for an unknown
    image."""
    shown = subprocess.run([docker, "history", "--no-trunc", "--human=false", "--format", "{{json .}}", image],
                           check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in shown.splitlines()]
    return [Layer(int(row["Size"]), _short(row["CreatedBy"])) for row in rows]


def table(image: str, own: Sequence[Layer], base: str, below: Sequence[Layer]) -> list[str]:
    """Return the lines about ``image``, whose layers ``own`` end with those of its base, ``below``."""
    above = own[:len(own) - len(below)]
    lines = [f"{image}: {_megabytes(sum(layer.size for layer in own))}, "
             f"{_megabytes(sum(layer.size for layer in above))} above its base"]
    lines += [f"  {_megabytes(layer.size):>9}  {layer.made_by}" for layer in above if layer.size]
    return [*lines, f"  {_megabytes(sum(layer.size for layer in below)):>9}  {base}"]


def _short(made_by: str) -> str:
    text = re.sub(r"^(RUN )?(\|\d+ .*?)?/bin/sh -c (#\(nop\) *)?", "", made_by)
    text = re.sub(r"\s*# buildkit$", "", re.sub(r"\s+", " ", text)).strip()
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS - 1] + "…"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    docker, base, *images = sys.argv[1:]
    below = layers(docker, base)
    for image in images:
        print("\n".join(table(image, layers(docker, image), base, below)))
