"""Checks and steps of a release in a git repository; tests/charts and tests/containers publish to a registry."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.repository import ROOT
from tests.tools.test_image_tag import git
from tools.release.__main__ import main
from tools.release.artifacts import compose_images, pin_images, sign
from tools.release.checks import changelog_section, failed_checks
from tools.release.documents import write_documents
from tools.release.plan import ALL_IMAGES, BASE, SERVICES, Commands, Image, Record, Release, ReleaseError

CHANGELOG = "# Changelog\n\n## 0.2.0 - 2026-12-01\n\n### Added\n\n- Games.\n\n## 0.1.0\n\nFirst release.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Repository that is ready to release 0.2.0, without images and chart."""
    folder = tmp_path / "five"
    (folder / "charts").mkdir(parents=True)
    (folder / "libs/dota").mkdir(parents=True)
    (folder / "charts/Chart.yaml").write_text('version: 0.2.0\nappVersion: "0.2.0"\n')
    for file in ("pyproject.toml", "libs/dota/pyproject.toml"):
        (folder / file).write_text('[project]\nversion = "0.2.0"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    (folder / "docker-compose.yml").write_text("a: ${FIVE_REDIS_IMAGE:-redis:8.2}\n"
                                               "b: ${FIVE_GRAFANA_IMAGE:-grafana/grafana:11}\n")
    create_repository(folder)
    return folder


def create_repository(folder: Path) -> None:
    """Make a folder a git repository and commit its files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    commit(folder)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "change")


def release_of(folder: Path, version: str = "0.2.0", registry: str = "registry.example/team",
               **settings: object) -> Release:
    return Release(version, folder, folder / "build", git(folder, "rev-parse", "HEAD").strip(), registry,
                   **settings)  # type: ignore[arg-type]


def problems(folder: Path, **settings: str) -> list[str]:
    """Return the failed checks, except of helm, which default tests do not have."""
    found = failed_checks(release_of(folder, helm="no-helm", **settings), Commands(folder, dry_run=True))
    return [problem for problem in found if not problem.startswith("no-helm is needed")]


def test_a_ready_checkout_passes_the_release_checks(checkout: Path) -> None:
    assert problems(checkout) == []
    git(checkout, "checkout", "-q", "--detach")  # how a release is continued after further commits
    assert problems(checkout) == []


@pytest.mark.parametrize(("file", "text", "problem"), [
    ("charts/Chart.yaml", 'version: 0.3.0\nappVersion: "0.2.0"\n', "charts/Chart.yaml: version is 0.3.0: set it to"),
    ("charts/Chart.yaml", 'version: 0.2.0\nappVersion: "0.1.0"\n', "appVersion is 0.1.0: set it to 0.2.0"),
    ("pyproject.toml", '[project]\nversion = "0.2.1"\n', "pyproject.toml: version is 0.2.1: set it to 0.2.0"),
    ("libs/dota/pyproject.toml", '[project]\nversion = "1.0.0"\n', "version is 1.0.0: set it to 0.2.0"),
    ("CHANGELOG.md", "## 0.2.0\n\ntext\n", 'the heading "## 0.2.0" has no valid date: write "## 0.2.0 - 20'),
    ("CHANGELOG.md", "## 0.2.0 - 2026-02-30\n\ntext\n", "has no valid date"),
    ("CHANGELOG.md", "## 0.2.0 - soon\n\ntext\n", "has no valid date"),
    ("CHANGELOG.md", "## 0.2.0 - 2026-12-01\n\n## 0.1.0\n", "the section of 0.2.0 is empty"),
    ("CHANGELOG.md", "## 0.2.1 - 2026-12-01\n\ntext\n", "has no section of 0.2.0"),
])
def test_release_refuses_files_of_another_version(checkout: Path, file: str, text: str, problem: str) -> None:
    (checkout / file).write_text(text)
    commit(checkout)
    (found,) = problems(checkout)
    assert problem in found


def test_release_refuses_uncommitted_changes(checkout: Path) -> None:
    (checkout / "new.py").write_text("1")
    (found,) = problems(checkout)
    assert "uncommitted changes (new.py)" in found


def test_release_refuses_a_commit_outside_main(checkout: Path) -> None:
    git(checkout, "checkout", "-qb", "feature")
    (checkout / "new.py").write_text("1")
    commit(checkout)
    (found,) = problems(checkout)
    assert "is not on main" in found
    assert "there is no branch trunk" in problems(checkout, branch="trunk")[0]


@pytest.mark.parametrize(("settings", "problem"), [
    ({"version": "0.2"}, 'VERSION "0.2": only MAJOR.MINOR.PATCH'), ({"version": ""}, 'VERSION ""'),
    ({"registry": ""}, 'REGISTRY "": a registry such as'), ({"registry": "https://r.example"}, "without a scheme"),
    ({"registry": "r.example/"}, "REGISTRY"),
])
def test_release_refuses_invalid_arguments(checkout: Path, settings: dict[str, str], problem: str) -> None:
    (found,) = problems(checkout, **settings)
    assert problem in found


def test_an_existing_tag_is_accepted_only_on_the_same_commit(checkout: Path) -> None:
    git(checkout, "tag", "-a", "v0.2.0", "-m", "release")
    assert problems(checkout) == []
    (checkout / "new.py").write_text("1")
    commit(checkout)
    (found,) = problems(checkout)
    assert "To continue that release: git checkout v0.2.0" in found
    git(checkout, "checkout", "-q", "v0.2.0")
    assert problems(checkout) == []
    git(checkout, "tag", "-d", "v0.2.0")
    git(checkout, "tag", "v0.2.0")
    assert "is not an annotated tag" in problems(checkout)[0]


def test_a_dry_run_prints_every_command_and_changes_nothing(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = git(checkout, "for-each-ref") + git(checkout, "status", "--porcelain", "--ignored")
    cosign = checkout.parent / "cosign"
    cosign.write_text("#!/bin/sh\nexit 1\n")
    cosign.chmod(0o755)
    arguments = ["0.2.0", "--registry", "r.example/team", "--dry-run", "--helm", "no-helm", "--cosign", str(cosign),
                 "--remote", "origin"]
    assert main(arguments, checkout) == 1  # helm is missing
    output = capsys.readouterr()
    assert output.err.startswith("release: no-helm is needed")
    lines = [line[2:] for line in output.out.splitlines() if line.startswith("$ ")]
    build = "VERSION=0.2.0 REGISTRY=r.example/team DOCKER=docker FLAVOUR="
    base = f"BASE={BASE}@DIGEST"
    steps = ["git tag -a v0.2.0 -m 'Five 0.2.0'", f"docker pull -q {BASE}", "docker pull -q redis:8.2",
             "docker pull -q r.example/team/five/dota-env:0.2.0",
             f"{build} {base} deploy/images/build.sh dota-env dotaservice rollout",
             f"{build}cuda {base} deploy/images/build.sh inference optimizer",
             "docker push -q r.example/team/five/optimizer:0.2.0-cuda", "SYFT_CHECK_FOR_APP_UPDATE=false syft scan",
             "no-helm package", "no-helm push", f"{cosign} sign --yes r.example/team/five/dota-env@DIGEST",
             f"{cosign} attest --yes --type cyclonedx", f"{cosign} sign --yes r.example/team/charts/five@DIGEST",
             "git push origin refs/tags/v0.2.0"]
    order = [next(i for i, line in enumerate(lines) if line.startswith(step)) for step in steps]
    assert order == sorted(order)
    assert all(any(f"push -q r.example/team/five/{image.service}:" in line for line in lines) for image in ALL_IMAGES)
    assert git(checkout, "for-each-ref") + git(checkout, "status", "--porcelain", "--ignored") == before


def test_a_release_without_cosign_can_be_refused(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["0.2.0", "--registry", "r.example", "--dry-run", "--cosign", "no-cosign"]
    assert main([*arguments, "--require-signatures"], checkout) == 1
    output = capsys.readouterr()
    assert "no-cosign is needed to sign" in output.err and "Signatures: none" in output.out


def published(release: Release) -> Record:
    """Return the record of a release whose images and chart are in the registry."""
    record = Record.load(release)
    record.images = {image.name: f"sha256:{index:064x}" for index, image in enumerate(release.images)}
    record.chart = f"sha256:{'c' * 64}"
    record.save()
    return record


def fake_docker(folder: Path, moves: bool = False) -> str:
    """Create an engine that pulls every image. Its digest is a hash of the name, and of the time if the tag moves."""
    path = folder / "docker"
    path.write_text(f"""#!/bin/sh
if [ "$1" = pull ]; then echo "$3" >>{folder}/pulled; exit; fi
for last; do :; done
digest=$(echo "$last{' $(date +%N)' if moves else ''}" | sha256sum | cut -c1-64)
echo "[\\"${{last%:*}}@sha256:$digest\\", \\"mirror.example/$last@sha256:$digest\\"]"
""")
    path.chmod(0o755)
    return str(path)


def test_images_of_others_are_pinned_once_by_digest(checkout: Path, tmp_path: Path) -> None:
    release = release_of(checkout, docker=fake_docker(tmp_path, moves=True))
    pin_images(release, Record.load(release), Commands(checkout, dry_run=False))
    pinned = dict(Record.load(release).pinned)
    assert pinned.keys() == {BASE, "redis:8.2", "grafana/grafana:11"}
    assert all(re.fullmatch(rf"{re.escape(name)}@sha256:[0-9a-f]{{64}}", found) for name, found in pinned.items())
    # The tags have moved since; a continued release builds on the same images.
    record = Record.load(release)
    pin_images(release, record, Commands(checkout, dry_run=False))
    assert record.pinned == pinned
    assert (tmp_path / "pulled").read_text().split() == [BASE, "redis:8.2", "grafana/grafana:11"]
    published(release)
    record = Record.load(release)
    write_documents(release, record)
    assert f"built on `{pinned[BASE]}`" in (release.folder / "release-notes.md").read_text()
    digest = pinned["redis:8.2"].partition("@")[2]
    assert f"\nredis: {{image: {{digest: {digest}}}}}\n" in (release.folder / "images.yaml").read_text()
    assert (release.folder / "images.env").read_text() == (
        f"FIVE_IMAGES=registry.example/team/five\nFIVE_VERSION=0.2.0\nFIVE_REDIS_IMAGE={pinned['redis:8.2']}\n"
        f"FIVE_GRAFANA_IMAGE={pinned['grafana/grafana:11']}\n")


def test_a_base_without_a_digest_is_refused(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\necho '[]'\n")
    (tmp_path / "docker").chmod(0o755)
    release = release_of(checkout, docker=str(tmp_path / "docker"))
    with pytest.raises(ReleaseError, match=rf"{BASE}: one digest in its registry is expected, not \[\]"):
        pin_images(release, Record.load(release), Commands(checkout, dry_run=False))
    given = release_of(checkout, docker="no-docker", base=f"python:3.11@sha256:{'a' * 64}")
    (checkout / "docker-compose.yml").write_text("")
    record = Record.load(given)
    pin_images(given, record, Commands(checkout, dry_run=False))
    assert record.pinned == {given.base: given.base}


def test_the_base_and_redis_are_those_of_image_and_chart() -> None:
    assert f"ARG BASE={BASE}\n" in (ROOT / "Dockerfile").read_text()
    assert compose_images(Release("0.2.0", ROOT, ROOT, "", "r.example")).keys() == {
        "FIVE_REDIS_IMAGE", "FIVE_PROMETHEUS_IMAGE", "FIVE_GRAFANA_IMAGE"}


def test_release_notes_values_and_checksums(checkout: Path) -> None:
    release = release_of(checkout)
    record = published(release)
    (release.folder / "sbom").mkdir()
    (release.folder / "sbom/rollout.cdx.json").write_text("{}")
    write_documents(release, record)
    notes = (release.folder / "release-notes.md").read_text()
    assert notes.startswith("# Five 0.2.0\n\n### Added\n\n- Games.\n\n## Artifacts") and "First release" not in notes
    assert all(digest in notes for digest in (*record.images.values(), record.chart)) and "\nNot signed:\n" in notes
    values = (release.folder / "images.yaml").read_text()
    assert "global: {image: {registry: registry.example/team}}" in values
    for key, service in SERVICES.items():
        assert f"\n{key}: {{image: {{digest: {record.images[service]}}}}}\n" in values
    assert f"\noptimizer: {{image: {{digest: {record.images['optimizer-cuda']}}}}}\n" in (
        release.folder / "images-cuda.yaml").read_text()
    sums = dict(line.split("  ")[::-1] for line in (release.folder / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == {"images.yaml", "images-cuda.yaml", "images.env", "release-notes.md", "sbom/rollout.cdx.json"}
    for name, value in sums.items():
        assert hashlib.sha256((release.folder / name).read_bytes()).hexdigest() == value


def test_signing_continues_after_a_failure(checkout: Path) -> None:
    """cosign is a program that fails at its second signature; its options are in `cosign sign --help`."""
    log = checkout.parent / "log"
    cosign = checkout.parent / "cosign"
    cosign.write_text(f'#!/bin/sh\necho "$@" >> {log}\n[ "$1 $(grep -c "^sign" {log})" != "sign 2" ]\n')
    cosign.chmod(0o755)
    release = release_of(checkout, images=(Image("rollout"),), cosign=str(cosign), cosign_key="k8s://five/key")
    record = published(release)
    with pytest.raises(ReleaseError, match="again to continue"):
        sign(release, record, Commands(checkout, dry_run=False))
    sign(release, Record.load(release), Commands(checkout, dry_run=False))
    rollout = f"registry.example/team/five/rollout@{record.images['rollout']}"
    chart = f"registry.example/team/charts/five@{record.chart}"
    signing = f"sign --yes --key k8s://five/key {chart}"
    assert log.read_text().splitlines() == [
        f"sign --yes --key k8s://five/key {rollout}", "attest --yes --key k8s://five/key --type cyclonedx --predicate "
        f"{release.folder}/sbom/rollout.cdx.json {rollout}", signing, signing]
    write_documents(release, Record.load(release))
    notes = (release.folder / "release-notes.md").read_text()
    assert "Not signed" not in notes and f"cosign verify --key key.pub {rollout}" in notes


def test_the_record_of_another_release_is_refused(checkout: Path) -> None:
    published(release_of(checkout))
    assert Record.load(release_of(checkout)).chart
    with pytest.raises(ReleaseError, match=r"has registry registry.example/team, this release other.example: .*"):
        Record.load(release_of(checkout, registry="other.example"))
    path = checkout / "build/release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "commit": "0" * 40}))
    with pytest.raises(ReleaseError, match="has commit 000"):
        Record.load(release_of(checkout))


def test_a_section_ends_before_the_next_version() -> None:
    assert changelog_section(CHANGELOG, "0.2.0") == "### Added\n\n- Games."


def test_variables_on_the_page_are_those_of_make_release() -> None:
    page = (ROOT / "docs/releases.md").read_text().partition("| variable |")[2].partition("\n\n")[0]
    recipe = (ROOT / "Makefile").read_text().partition("\nrelease:")[2].partition("\n\n")[0]
    told = set(re.findall(r"^\| `([A-Z_]+)", page, re.M))
    used = set(re.findall(r"\$\(([A-Z_]+)\)", recipe))
    assert told == (used | {"COSIGN_KEY"}) - {"PY", "STAMP", "RELEASE_TOOLS", "DOCKER", "PLAIN_HTTP"}
