"""Release of a version: ``python -m tools.release VERSION --registry REGISTRY [--dry-run]``, or ``make release``.

Running it again after a failure continues: build/release/VERSION/release.json and the registry hold the steps that are
done. docs/releases.md describes them.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from tools.release.artifacts import pin_images, publish_chart, publish_images, sign, write_sboms
from tools.release.checks import failed_checks
from tools.release.documents import unsigned, write_documents
from tools.release.plan import ALL_IMAGES, BASE, Commands, Record, Release, ReleaseError

ROOT = Path(__file__).resolve().parents[2]


def make_release(release: Release, commands: Commands) -> None:
    """Publish the release and write its files. Raise ReleaseError when a step fails."""
    record = Record.load(release)
    if commands.query("git", "rev-parse", "-q", "--verify", f"refs/tags/{release.tag}").returncode:
        commands.change("git", "tag", "-a", release.tag, "-m", f"Five {release.version}", release.commit)
    pin_images(release, record, commands)
    publish_images(release, record, commands)
    write_sboms(release, record, commands)
    publish_chart(release, record, commands)
    sign(release, record, commands)
    if not commands.dry_run:
        write_documents(release, record)
    if release.remote:
        commands.change("git", "push", release.remote, f"refs/tags/{release.tag}")
    if commands.dry_run:
        print(f"dry run: nothing was built, tagged or pushed. Signatures: {'by cosign' if release.cosign else 'none'}")
        return
    missing = unsigned(release, record)
    if missing:
        print(f"NOT SIGNED ({release.cosign or 'cosign is not installed'}): {len(missing)} images and charts; "
              "release-notes.md says so. After installing cosign run the release again.")
    print(f"Five {release.version} is released; its files are in {release.folder}"
          + ("" if release.remote else f". Publish the tag: git push origin {release.tag}"))


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Make the release and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="version to release, such as 0.2.0")
    parser.add_argument("--registry", required=True, help="registry of images and chart, such as registry.example/team")
    parser.add_argument("--dry-run", action="store_true", help="check, and print the commands only")
    parser.add_argument("--images", default=",".join(image.name for image in ALL_IMAGES), help="names of the images")
    parser.add_argument("--branch", default="main", help="branch that must contain the commit")
    parser.add_argument("--remote", default="", help="git remote that gets the tag; by default none")
    parser.add_argument("--docker", default="docker", help="container engine's command")
    parser.add_argument("--helm", default="helm", help="helm's command")
    parser.add_argument("--syft", default="syft", help="syft's command")
    parser.add_argument("--cosign", default="cosign", help="cosign's command")
    parser.add_argument("--require-signatures", action="store_true", help="refuse to release without cosign")
    parser.add_argument("--plain-http", action="store_true", help="the registry speaks HTTP; for tests")
    parser.add_argument("--base", default=os.environ.get("BASE") or BASE, help="base image, pinned by its digest")
    parser.add_argument("--unpinned-base", action="store_true", help="build on a local base image; for tests")
    given = parser.parse_args(arguments)
    by_name = {image.name: image for image in ALL_IMAGES}
    names = given.images.split(",")
    if unknown := [name for name in names if name not in by_name]:
        parser.error(f"--images {unknown[0]}: only {', '.join(by_name)} are allowed")
    commands = Commands(root, given.dry_run)
    commit = commands.query("git", "rev-parse", "HEAD").stdout.strip()
    release = Release(given.version, root, root / "build/release" / given.version, commit, given.registry,
                      tuple(by_name[name] for name in names), given.branch, given.docker, given.helm, given.syft,
                      shutil.which(given.cosign) or "", os.environ.get("COSIGN_KEY", ""), given.plain_http,
                      given.remote, given.base, not given.unpinned_base)
    try:
        problems = failed_checks(release, commands)
        if given.require_signatures and not release.cosign:
            problems.append(f"{given.cosign} is needed to sign: https://docs.sigstore.dev/cosign")
        for problem in problems:
            print(f"release: {problem}", file=sys.stderr)
        if problems and not given.dry_run:
            return 1
        make_release(release, commands)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
