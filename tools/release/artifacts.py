"""Images and chart in a registry, their SBOMs and signatures.

Every step looks first whether an earlier attempt has done it. What a registry has under the release's tag is accepted
only if it was made from the release's commit: a released tag never changes.
"""

import json
import re
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tools.release.plan import Commands, Image, Record, Release, ReleaseError

REVISION = '{{index .Config.Labels "org.opencontainers.image.revision"}}'


def compose_images(release: Release) -> dict[str, str]:
    """Return the images of others in docker-compose.yml by the variable that replaces each."""
    text = (release.root / "docker-compose.yml").read_text(encoding="utf-8")
    return dict(re.findall(r"\$\{(FIVE_(?:REDIS|PROMETHEUS|GRAFANA)_IMAGE):-([^}]+)\}", text))


def pin_images(release: Release, record: Record, commands: Commands) -> None:
    """Record the digests of the base image and of the images of others that a deployment runs, so that a tag that moves
    changes nothing. A continued release keeps them. Raise ReleaseError."""
    if not release.pin_base:
        return
    for name in (release.base, *compose_images(release).values()):
        if name in record.pinned:
            continue
        pinned = name if "@sha256:" in name else f"{name}@{_pull_digest(release, name, commands)}"
        if not commands.dry_run:
            record.pinned[name] = pinned
            record.save()


def _pull_digest(release: Release, name: str, commands: Commands) -> str:
    """Pull an image and return the digest that its registry has under the tag."""
    commands.change(release.docker, "pull", "-q", name)
    if commands.dry_run:
        return "DIGEST"
    shown = commands.query(release.docker, "image", "inspect", "--format", "{{json .RepoDigests}}", name).stdout
    repository = re.sub(r"^docker\.io/(library/)?", "", re.sub(r":[^:/]+$", "", name))
    digests = [found for found in json.loads(shown or "[]") if found.startswith(f"{repository}@")]
    if len(digests) != 1:
        raise ReleaseError(f"{name}: one digest in its registry is expected, not {digests}: remove the local image "
                           "(docker image rm), and run the release again")
    return _digest(digests[0], name)


def publish_images(release: Release, record: Record, commands: Commands) -> None:
    """Build the images that the registry does not have, push them, and record their digests. Raise ReleaseError."""
    waiting = [image for image in release.images if image.name not in record.images]
    missing = []
    for image in waiting:
        if commands.pull(release.docker, "pull", "-q", release.reference(image)) is None:
            missing.append(image)
        else:
            _require_commit(release, image, commands)
            _record_digest(release, image, record, commands)
    for flavour in ("", "cuda"):
        services = [image.service for image in missing if image.flavour == flavour]
        if services:
            base = record.pinned.get(release.base, f"{release.base}@DIGEST" if release.pin_base else release.base)
            commands.change("deploy/images/build.sh", *services, VERSION=release.version, REGISTRY=release.registry,
                            DOCKER=release.docker, FLAVOUR=flavour, BASE=base)
    for image in missing:
        if not commands.dry_run:
            _require_commit(release, image, commands)
        commands.change(release.docker, "push", "-q", release.reference(image))
        _record_digest(release, image, record, commands)


def write_sboms(release: Release, record: Record, commands: Commands) -> None:
    """Write an SBOM of each image in CycloneDX, sbom/<image>.cdx.json. Raise ReleaseError."""
    for image in release.images:
        path = release.folder / "sbom" / f"{image.name}.cdx.json"
        if path.is_file():
            continue
        partial = path.with_suffix(".partial")
        if not commands.dry_run:
            path.parent.mkdir(parents=True, exist_ok=True)
        commands.change(release.syft, "scan", "-q", "-o", f"cyclonedx-json={partial}",
                        _by_digest(release, image, record), SYFT_CHECK_FOR_APP_UPDATE="false")
        if not commands.dry_run:
            partial.replace(path)


def publish_chart(release: Release, record: Record, commands: Commands) -> None:
    """Package the committed chart, push it, and record its digest. Raise ReleaseError."""
    package = release.folder / f"five-{release.version}.tgz"
    http = ["--plain-http"] if release.plain_http else []
    if record.chart and package.is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        commands.change("git", "archive", "-o", f"{folder}/charts.tar", release.tag, "charts")
        commands.change("tar", "-xf", f"{folder}/charts.tar", "-C", folder)
        commands.change(release.helm, "package", f"{folder}/charts", "-d", str(release.folder))
        output = commands.pull(release.helm, "pull", f"oci://{release.chart_repository}", "--version", release.version,
                               "-d", folder, *http)
        if output is not None:
            pulled = Path(folder, package.name)
            if _contents(pulled) != _contents(package):
                raise ReleaseError(f"oci://{release.chart_repository}:{release.version} exists with other content than "
                                   f"{release.tag}: a released version never changes. Release another version")
            package.write_bytes(pulled.read_bytes())
    if output is None:  # a second push would change the digest, which covers the time of the push
        output = commands.change(release.helm, "push", str(package), f"oci://{release.registry}/charts", *http)
    if not commands.dry_run:
        record.chart = _digest(output, "helm")
        record.save()


def sign(release: Release, record: Record, commands: Commands) -> None:
    """Sign images and chart by digest, and attest the images' SBOMs, with cosign if it is installed. Raise
    ReleaseError."""
    if not release.cosign:
        return
    key = ["--key", release.cosign_key] if release.cosign_key else []
    http = ["--allow-http-registry"] if release.plain_http else []
    for image in release.images:
        name = _by_digest(release, image, record)
        if name not in record.signed:
            commands.attended(release.cosign, "sign", "--yes", *key, *http, name)
            commands.attended(release.cosign, "attest", "--yes", *key, *http, "--type", "cyclonedx", "--predicate",
                              str(release.folder / "sbom" / f"{image.name}.cdx.json"), name)
            _record_signature(name, record, commands)
    name = f"{release.chart_repository}@{record.chart or 'DIGEST'}"
    if name not in record.signed:
        commands.attended(release.cosign, "sign", "--yes", *key, *http, name)
        _record_signature(name, record, commands)


def _by_digest(release: Release, image: Image, record: Record) -> str:
    return f"{release.repository(image)}@{record.images.get(image.name, 'DIGEST')}"  # DIGEST in a dry run


def _require_commit(release: Release, image: Image, commands: Commands) -> None:
    reference = release.reference(image)
    revision = commands.query(release.docker, "image", "inspect", "--format", REVISION, reference).stdout.strip()
    if revision != release.commit:
        raise ReleaseError(f"{reference} was built from commit {revision[:12] or 'unknown'}, and {release.tag} is "
                           f"{release.commit[:12]}: a released tag never changes. Release another version")


def _record_digest(release: Release, image: Image, record: Record, commands: Commands) -> None:
    if commands.dry_run:
        return
    reference = release.reference(image)
    shown = commands.query(release.docker, "image", "inspect", "--format", "{{json .RepoDigests}}", reference).stdout
    digests = [name for name in json.loads(shown or "[]") if name.startswith(f"{release.repository(image)}@")]
    if len(digests) != 1:
        raise ReleaseError(f"{reference}: one digest in the registry is expected, not {digests}: remove the local "
                           "image (docker image rm), and run the release again")
    record.images[image.name] = _digest(digests[0], reference)
    record.save()
    print(f"{reference} is {record.images[image.name]}")


def _record_signature(name: str, record: Record, commands: Commands) -> None:
    if not commands.dry_run:
        record.signed.append(name)
        record.save()


def _digest(text: str, what: str) -> str:
    found = re.search(r"sha256:[0-9a-f]{64}", text)
    if found is None:
        raise ReleaseError(f"{what} named no digest:\n{text}")
    return found[0]


def _contents(package: Path) -> dict[str, bytes]:
    with tarfile.open(package) as archive:
        return {member.name: read.read() for member in _files(archive) if (read := archive.extractfile(member))}


def _files(archive: tarfile.TarFile) -> Iterable[tarfile.TarInfo]:
    return (member for member in archive if member.isfile())
