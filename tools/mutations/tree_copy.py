"""Copy of the tree in which mutants are tested, and the process that runs tests there."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

LEFT_OUT = {".git", ".venv", "build", "dist", "runs", "shared", "node_modules", ".mypy_cache", ".ruff_cache",
            ".pytest_cache", ".hypothesis", ".import_linter_cache"}
# Python processes in the copy import from the copy: an editable install's finder goes before every path.
SITE = """import os
import sys
sys.meta_path[:] = [f for f in sys.meta_path if not type(f).__module__.startswith("_editable")]
sys.path[:] = [p for p in sys.path if p != {libs!r}]
if "MUTATIONS_TEST" in os.environ:
    from tools.mutations.line_record import record_child
    record_child()
"""


class TreeCopy:
    """A copy of a tree in a temporary folder and a test server in it, with imported libraries and pytest plugins.

    A context manager, which removes both.
    """

    def __init__(self, root: Path, preload: tuple[str, ...], plugins: tuple[str, ...]) -> None:
        self.root = root
        self.preload = preload
        self.plugins = plugins
        self.path = Path(tempfile.mkdtemp(prefix="mutations-"))

    def __enter__(self) -> Self:
        shutil.copytree(self.root, self.path, symlinks=True, dirs_exist_ok=True,
                        ignore=lambda folder, names: [name for name in names if name in LEFT_OUT])
        (self.path / "sitecustomize.py").write_text(SITE.format(libs=str(self.root / "libs")), encoding="utf-8")
        paths = [str(self.path / "libs"), str(self.path)]
        if self.root != Path(__file__).parents[2]:
            paths.append(str(Path(__file__).parents[2]))  # the server's code, for trees without it
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1",
                       "PYTHONHASHSEED": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                       "PYTEST_PLUGINS": ",".join(self.plugins)}
        self._log = (self.path / "server.log").open("wb")
        command = [sys.executable, "-m", "tools.mutations.test_server", *self.preload, *self.plugins]
        self._server = subprocess.Popen(command, cwd=self.path, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self._log)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        self._server.wait()
        self._log.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def stop(self) -> None:
        """End the test server, so that a job that runs fails."""
        self._server.terminate()

    def write(self, source: str, text: str) -> None:
        """Replace the text of a source file and remove its bytecode."""
        path = self.path / source
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink(missing_ok=True)

    def run(self, **job: Any) -> dict[str, Any]:
        """Have the test server run a job, see ``tools.mutations.test_server``. Raise RuntimeError if it died."""
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps(job).encode() + b"\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        if not line:
            log = (self.path / "server.log").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"test server in {self.path} exited with {self._server.wait()}: {log[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
