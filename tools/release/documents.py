"""Files of a release that describe it: values with digests, release notes, checksums."""

import hashlib
from pathlib import Path

from tools.release.artifacts import compose_images
from tools.release.checks import changelog_section
from tools.release.plan import SERVICES, Image, Record, Release


def write_documents(release: Release, record: Record) -> None:
    """Write images.yaml, images-cuda.yaml, images.env, release-notes.md and SHA256SUMS into the release's folder."""
    (release.folder / "images.yaml").write_text(_values(release, record, ""), encoding="utf-8")
    if any(image.flavour == "cuda" for image in release.images):
        (release.folder / "images-cuda.yaml").write_text(_values(release, record, "cuda"), encoding="utf-8")
    (release.folder / "images.env").write_text(_compose_variables(release, record), encoding="utf-8")
    (release.folder / "release-notes.md").write_text(release_notes(release, record), encoding="utf-8")
    (release.folder / "SHA256SUMS").write_text(checksums(release.folder), encoding="utf-8")


def release_notes(release: Release, record: Record) -> str:
    """Return the release notes: the CHANGELOG's section, images, installation and signatures."""
    section = changelog_section((release.root / "CHANGELOG.md").read_text(encoding="utf-8"), release.version)
    rows = [f"| `{release.reference(image)}` | `{record.images[image.name]}` |" for image in release.images]
    rows.append(f"| `oci://{release.chart_repository}`, version {release.version} | `{record.chart}` |")
    base = record.pinned.get(release.base, release.base)
    install = f"helm install five oci://{release.chart_repository} --version {release.version} -f images.yaml"
    return "\n".join([f"# Five {release.version}", "", section, "", "## Artifacts", "", "| image or chart | digest |",
                      "|---|---|", *rows, "", f"Git commit {release.commit}, tag {release.tag}, built on `{base}`. "
                      "SBOMs are in sbom/, checksums in SHA256SUMS.", "", "```", install, "```", "", "## Signatures",
                      "", *_signatures(release, record), ""])


def checksums(folder: Path) -> str:
    """Return the SHA-256 of every published file, in the format of `sha256sum --check`."""
    files = sorted(path for path in folder.rglob("*")
                   if path.is_file() and path.name not in ("SHA256SUMS", "release.json") and path.suffix != ".partial")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)


def unsigned(release: Release, record: Record) -> list[str]:
    """Return the images and the chart without a signature, by digest."""
    names = [f"{release.repository(image)}@{record.images[image.name]}" for image in release.images]
    return [name for name in (*names, f"{release.chart_repository}@{record.chart}") if name not in record.signed]


def _signatures(release: Release, record: Record) -> list[str]:
    missing = unsigned(release, record)
    if missing:
        return ["Not signed:", "", *(f"- `{name}`" for name in missing)]
    how = f"--key {Path(release.cosign_key).stem}.pub" if release.cosign_key else \
        "--certificate-identity IDENTITY --certificate-oidc-issuer ISSUER"
    return ["Images and chart are signed with cosign, the images' SBOMs are attested:", "", "```",
            f"cosign verify {how} {record.signed[0]}", "```"]


def _values(release: Release, record: Record, flavour: str) -> str:
    which = f"-f images.yaml{' -f images-cuda.yaml' if flavour else ''}"
    lines = [f"# Images of Five {release.version} by digest{' for GPUs' if flavour else ''}: helm install five "
             f"oci://{release.chart_repository} --version {release.version} {which}"]
    if not flavour:
        lines.append(f"global: {{image: {{registry: {release.registry}}}}}")
        redis = record.pinned.get(compose_images(release)["FIVE_REDIS_IMAGE"])
        lines += [f"redis: {{image: {{digest: {redis.partition('@')[2]}}}}}"] if redis else []
    return "\n".join([*lines, *(f"{key}: {{image: {{digest: {record.images[image.name]}}}}}" for key, service in
                                SERVICES.items() if (image := Image(service, flavour)) in release.images), ""])


def _compose_variables(release: Release, record: Record) -> str:
    others = {name: record.pinned.get(image, image) for name, image in compose_images(release).items()}
    values = {"FIVE_IMAGES": f"{release.registry}/five", "FIVE_VERSION": release.version, **others}
    return "".join(f"{name}={value}\n" for name, value in values.items())
