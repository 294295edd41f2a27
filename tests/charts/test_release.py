"""The chart as an OCI artifact, in a real registry, and the values of a release."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.charts.rendering import CHART, run, tool
from tests.oci_registry import oci_registry
from tests.tools.test_image_tag import git
from tools.release.artifacts import publish_chart
from tools.release.checks import failed_checks
from tools.release.documents import write_documents
from tools.release.plan import SERVICES, Commands, Image, Record, Release, ReleaseError

VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with oci_registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Repository of the chart, with the release's tag."""
    folder = tmp_path / "five"
    shutil.copytree(CHART, folder / "charts")
    git(folder, "init", "-q", "-b", "main")
    tag(folder)
    return folder


def tag(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "chart")
    git(folder, "tag", "-fam", "release", f"v{VERSION}")


def release_of(folder: Path, registry: str, files: str, helm: str) -> Release:
    return Release(VERSION, folder, folder.parent / files, git(folder, "rev-parse", "HEAD").strip(), registry,
                   helm=str(tool(helm)), plain_http=True)


def publish(release: Release) -> Record:
    record = Record.load(release)
    publish_chart(release, record, Commands(release.root, dry_run=False))
    return record


def test_the_chart_is_pushed_once_and_installs_from_the_registry(
        checkout: Path, registry: str, helm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "charts/ignored-by-nobody.yaml").write_text("not: committed\n")
    team = f"{registry}/{helm}"
    record = publish(release_of(checkout, team, "first", helm))
    assert capsys.readouterr().out.count(" push ") == 1
    # Continued after a failure, with the files and on another machine.
    assert publish(release_of(checkout, team, "first", helm)).chart == record.chart
    assert " push " not in capsys.readouterr().out
    assert publish(release_of(checkout, team, "second", helm)).chart == record.chart
    assert " push " not in capsys.readouterr().out
    pulled = run(helm, "pull", f"oci://{team}/charts/five", "--version", VERSION, "--plain-http", "-d", tmp_path)
    assert pulled.returncode == 0, pulled.stderr
    package = tmp_path / f"five-{VERSION}.tgz"
    assert package.read_bytes() == (tmp_path / "first" / package.name).read_bytes()
    names = subprocess.run(["tar", "-tzf", package], capture_output=True, text=True, check=True).stdout
    assert "five/values.yaml" in names and "ignored-by-nobody" not in names
    rendered = run(helm, "template", "five", package)
    assert rendered.returncode == 0 and f"five/rollout:{VERSION}" in rendered.stdout


def test_another_chart_under_a_released_version_is_refused(checkout: Path, registry: str, helm: str) -> None:
    team = f"{registry}/changed-{helm}"
    publish(release_of(checkout, team, "first", helm))
    (checkout / "charts/values.yaml").write_text((checkout / "charts/values.yaml").read_text() + "# changed\n")
    tag(checkout)
    with pytest.raises(ReleaseError, match="exists with other content than v.*: a released version never changes"):
        publish(release_of(checkout, team, "second", helm))


def test_an_unreachable_registry_fails_the_release(checkout: Path, helm: str) -> None:
    with pytest.raises(ReleaseError, match="helm pull .* ended with 1"):
        publish(release_of(checkout, "127.0.0.1:9", "first", helm))


def test_values_of_a_release_name_every_image_by_digest(checkout: Path, helm: str) -> None:
    release = release_of(checkout, "registry.example:5000/team", "files", helm)
    (checkout / "CHANGELOG.md").write_text(f"## {VERSION} - 2026-12-01\n\ntext\n")
    shutil.copy(CHART.parent / "docker-compose.yml", checkout)  # names the images of others
    record = Record.load(release)
    record.images = {image.name: f"sha256:{index:064x}" for index, image in enumerate(release.images)}
    record.chart = f"sha256:{'c' * 64}"
    record.save()
    write_documents(release, record)
    files = ["-f", str(release.folder / "images.yaml")]
    rendered = run(helm, "template", "five", CHART, *files, "--set", "dotaEnv.placement=deployment,play.enabled=true,"
                   "dotaservice.enabled=true,dotaservice.allowFrom[0].podSelector.matchLabels.app=trainer")
    assert rendered.returncode == 0, rendered.stderr
    for service in SERVICES.values():
        assert f"registry.example:5000/team/five/{service}@{record.images[service]}" in rendered.stdout, service
    assert f":{VERSION}\n" not in rendered.stdout.replace(f'version: "{VERSION}"', "")
    rendered = run(helm, "template", "five", CHART, *files, "-f", str(release.folder / "images-cuda.yaml"))
    assert f"five/optimizer@{record.images[Image('optimizer', 'cuda').name]}" in rendered.stdout


def test_helm_lint_is_a_check_of_a_release(checkout: Path, helm: str) -> None:
    for file in ("pyproject.toml", "libs/dota/pyproject.toml"):
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text(f'[project]\nversion = "{VERSION}"\n')
    (checkout / "CHANGELOG.md").write_text(f"## {VERSION} - 2026-12-01\n\ntext\n")
    tag(checkout)
    assert failed_checks(release_of(checkout, "r.example", "files", helm), Commands(checkout, dry_run=True)) == []
    (checkout / "charts/templates/broken.yaml").write_text("{{ .Values.no.such.value }}\n")
    tag(checkout)
    (problem,) = failed_checks(release_of(checkout, "r.example", "files", helm), Commands(checkout, dry_run=True))
    assert problem.startswith("helm lint refuses the chart") and "broken.yaml" in problem
