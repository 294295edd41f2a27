"""The repository's own files, for tests that read all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = {"build", "dist", "runs", "shared", "node_modules", "__pycache__"}
SUFFIXES = {".py", ".pyi", ".md", ".cpp", ".hpp", ".yaml", ".yml", ".tpl", ".txt", ".sh", ".json", ".proto", ".toml",
            ".ts", ".tsx", ".js", ".css", ".html", ".acl"}
NAMES = {"Makefile", "Dockerfile", "CMakeLists.txt"}


def sources(*suffixes: str) -> Iterator[Path]:
    """Every text file of the project that somebody wrote, or only those with ``suffixes``; nothing that is built."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(d for d in folders if d not in LEFT_OUT and (not d.startswith(".") or d == ".ci"))
        for name in sorted(files):
            path = Path(folder, name)
            written = (path.suffix in SUFFIXES or name in NAMES) and "_pb2" not in name
            if written and (not suffixes or path.suffix in suffixes):
                yield path


def answers_imports(folder: Path) -> None:
    """Has Python processes with ``folder`` in PYTHONPATH import from there. An editable install of the project puts its
    own finder before every path."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith('_editable')]\n")
