"""A release of one image to a real registry, with an interruption and a second machine."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.charts.rendering import tool
from tests.containers.engine import BASE, DOCKER, ROOT, docker
from tests.oci_registry import oci_registry
from tests.tools.test_image_tag import git
from tests.tools.test_release import commit, create_repository
from tools.release.__main__ import main
from tools.release.artifacts import pin_images
from tools.release.plan import Commands, Record, Release

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]
VERSION = "0.2.0"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with oci_registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Repository with the files of this one, ready to release."""
    folder = tmp_path_factory.mktemp("release") / "five"
    for name in git(ROOT, "ls-files", "-co", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    text = (folder / "CHANGELOG.md").read_text()
    (folder / "CHANGELOG.md").write_text(text.replace(f"## {VERSION}\n", f"## {VERSION} - 2026-12-01\n"))
    create_repository(folder)
    return folder


def release(checkout: Path, registry: str, syft: str) -> int:
    return main([VERSION, "--registry", registry, "--plain-http", "--images", "dota-env", "--docker", DOCKER, "--helm",
                 str(tool("helm4")), "--syft", syft, "--base", BASE, "--unpinned-base"], checkout)


def test_images_of_others_are_pinned_by_the_registrys_digest(checkout: Path, registry: str) -> None:
    name = f"{registry}/library/python:3.11-slim-bookworm"
    docker("tag", BASE, name)
    docker("push", "-q", name)
    (checkout / "docker-compose.yml").write_text(f"image: ${{FIVE_REDIS_IMAGE:-{name}}}\n")
    found = Release(VERSION, checkout, checkout / "build/pins", "0", registry, docker=DOCKER, base=name)
    record = Record.load(found)
    pin_images(found, record, Commands(checkout, dry_run=False))
    git(checkout, "checkout", "docker-compose.yml")
    digest = record.pinned[name].removeprefix(f"{name}@")
    manifest = httpx.get(f"http://{registry}/v2/library/python/manifests/{digest}", trust_env=False, headers={
        "Accept": "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json"})
    assert manifest.status_code == 200 and manifest.headers["Docker-Content-Digest"] == digest
    assert docker("image", "inspect", "--format", "{{.Id}}", record.pinned[name]), "what `FROM` is given is found"


def test_an_interrupted_release_continues_and_never_changes_a_tag(
        checkout: Path, registry: str, capsys: pytest.CaptureFixture[str]) -> None:
    syft = str(ROOT / "build/release-tools/bin/syft")
    folder = checkout / "build/release" / VERSION
    assert release(checkout, registry, "false") == 1  # no SBOM
    output = capsys.readouterr()
    assert "again to continue" in output.err and "docker-registry" not in output.err, output.err
    digest = json.loads((folder / "release.json").read_text())["images"]["dota-env"]
    manifest = httpx.get(f"http://{registry}/v2/five/dota-env/manifests/{VERSION}", trust_env=False, headers={
        "Accept": "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json"})
    assert manifest.headers["Docker-Content-Digest"] == digest

    assert release(checkout, registry, syft) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert f"{DOCKER} push" not in output.out and "NOT SIGNED (cosign is not installed): 2" in output.out
    sbom = json.loads((folder / "sbom/dota-env.cdx.json").read_text())
    assert sbom["bomFormat"] == "CycloneDX" and {"numpy", "five"} <= {part["name"] for part in sbom["components"]}
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    assert digest in (folder / "release-notes.md").read_text()

    # Another machine has neither the files nor the image.
    shutil.rmtree(folder)
    docker("image", "rm", "-f", f"{registry}/five/dota-env:{VERSION}")
    assert release(checkout, registry, syft) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert f"{DOCKER} push" not in output.out and "helm push" not in output.out
    assert json.loads((folder / "release.json").read_text())["images"]["dota-env"] == digest

    shutil.rmtree(folder)
    (checkout / "README.md").write_text("changed\n")
    commit(checkout)
    assert release(checkout, registry, syft) == 1
    assert "v0.2.0 is commit" in capsys.readouterr().err
    git(checkout, "tag", "-d", f"v{VERSION}")
    assert release(checkout, registry, syft) == 1
    assert "a released tag never changes. Release another version" in capsys.readouterr().err
