"""Conditions of a release. All are checked before anything changes."""

import re
import shutil
import tomllib
from datetime import date
from pathlib import Path

import yaml

from tools.release.plan import Commands, Release

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def failed_checks(release: Release, commands: Commands) -> list[str]:
    """Return what prevents the release, one message each."""
    if not VERSION.fullmatch(release.version):
        return [f'VERSION "{release.version}": only MAJOR.MINOR.PATCH is allowed, such as 0.2.0']
    return [*_git(release, commands), *_files(release), *_tools(release, commands)]


def changelog_section(text: str, version: str) -> str:
    """Return a version's section of the CHANGELOG without its heading. Raise ValueError if the heading has no date."""
    heading = re.search(rf"^## {re.escape(version)}\b(.*)$", text, re.M)
    wanted = f'"## {version} - {date.today().isoformat()}"'
    if heading is None:
        raise ValueError(f"CHANGELOG.md has no section of {version}: add one that begins with {wanted}")
    try:
        if not re.fullmatch(r" - \d{4}-\d\d-\d\d", heading[1].rstrip()):
            raise ValueError
        date.fromisoformat(heading[1].strip(" -"))
    except ValueError:
        raise ValueError(f'CHANGELOG.md: the heading "{heading[0]}" has no valid date: write {wanted}') from None
    section = re.split(r"^## ", text[heading.end():], maxsplit=1, flags=re.M)[0].strip()
    if not section:
        raise ValueError(f"CHANGELOG.md: the section of {version} is empty")
    return section


def _git(release: Release, commands: Commands) -> list[str]:
    problems = []
    changed = commands.query("git", "status", "--porcelain").stdout.splitlines()
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        problems.append(f"the checkout has uncommitted changes ({', '.join(line[3:] for line in changed[:5])}{more}): "
                        "commit or remove them")
    if commands.query("git", "rev-parse", "-q", "--verify", f"refs/heads/{release.branch}").returncode:
        problems.append(f"there is no branch {release.branch}, from which releases are made")
    elif commands.query("git", "merge-base", "--is-ancestor", release.commit, release.branch).returncode:
        problems.append(f"commit {release.commit[:12]} is not on {release.branch}: merge it first, or check out "
                        f"{release.branch}")
    tagged = commands.query("git", "rev-parse", "-q", "--verify", f"{release.tag}^{{commit}}").stdout.strip()
    if tagged and tagged != release.commit:
        problems.append(f"{release.tag} is commit {tagged[:12]}, and {release.commit[:12]} is checked out. To continue "
                        f"that release: git checkout {release.tag}. Other content needs another version")
    elif tagged and commands.query("git", "cat-file", "-t", release.tag).stdout.strip() != "tag":
        problems.append(f"{release.tag} is not an annotated tag: remove it (git tag -d {release.tag})")
    return problems


def _files(release: Release) -> list[str]:
    problems = []
    chart = yaml.safe_load((release.root / "charts/Chart.yaml").read_text(encoding="utf-8"))
    found = {f"charts/Chart.yaml: {key}": str(chart[key]) for key in ("version", "appVersion")}
    for file in ("pyproject.toml", "libs/dota/pyproject.toml"):
        project = tomllib.loads((release.root / file).read_text(encoding="utf-8"))["project"]
        found[f"{file}: version"] = project["version"]
    problems += [f"{where} is {version}: set it to {release.version}" for where, version in found.items()
                 if version != release.version]
    try:
        changelog_section((release.root / "CHANGELOG.md").read_text(encoding="utf-8"), release.version)
    except ValueError as error:
        problems.append(str(error))
    if not re.fullmatch(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)*", release.registry):
        problems.append(f'REGISTRY "{release.registry}": a registry such as registry.example/team is needed, without a '
                        "scheme and without / at its end")
    return problems


def _tools(release: Release, commands: Commands) -> list[str]:
    problems = []
    if shutil.which(release.helm) is None:
        problems.append(f"{release.helm} is needed: https://helm.sh/docs/intro/install")
    else:
        linted = commands.query(release.helm, "lint", "--strict", "--quiet", "charts")
        if linted.returncode:
            problems.append(f"helm lint refuses the chart:\n{(linted.stdout + linted.stderr).rstrip()}")
    if commands.dry_run:
        return problems
    if shutil.which(release.syft) is None:
        problems.append(f"{release.syft} is needed for the SBOMs: https://github.com/anchore/syft")
    if shutil.which(release.docker) is None or commands.query(release.docker, "info").returncode:
        problems.append(f"{release.docker} does not answer: start the engine, or set DOCKER")
    if release.cosign_key and not (Path(release.cosign_key).is_file() or "://" in release.cosign_key):
        problems.append(f"COSIGN_KEY {release.cosign_key} is neither a file nor a URL of a key service")
    return problems
