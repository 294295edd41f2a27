"""Prefetches survive compilation."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dota
from dota import _core

CORE = Path(dota.__file__).parent / "core"
INSTRUCTION = {"x86_64": "prefetch", "aarch64": "prfm"}.get(platform.machine())


@pytest.mark.skipif(INSTRUCTION is None or shutil.which("objdump") is None, reason="needs objdump, on x86 or ARM")
@pytest.mark.skipif("FIVE_LIBS" in os.environ, reason="that core may be compiled without optimisation")
def test_prefetches_are_in_the_compiled_core() -> None:
    """gcc removes calls of a function that only prefetches, so prefetch_lines() must appear to have other effects."""
    sources = [path.read_text() for path in sorted(CORE.rglob("*.[ch]pp"))]
    defined = "inline void prefetch_lines("
    assert not [text for text in sources if text.count("__builtin_prefetch") > text.count(defined)]
    asked = sum(len(re.findall(r"\bprefetch_lines\(", text)) for text in sources) - 1
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(_core.__file__)], capture_output=True,
                            text=True, check=True).stdout
    found = len(re.findall(rf"\t{INSTRUCTION}", listed))
    assert asked > 5 and found >= asked
