"""The release to make: version, commit, registry, images, and the folder with its files."""

import json
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# Service by its key in the chart's values.
SERVICES = {"dotaEnv": "dota-env", "dotaservice": "dotaservice", "rollout": "rollout", "opponents": "opponents",
            "evaluator": "evaluator", "play": "play", "controller": "controller", "inference": "inference",
            "optimizer": "optimizer"}
CUDA = ("inference", "optimizer")
BASE = "python:3.11-slim-bookworm"  # the Dockerfile's
# Errors of registries for an unknown name or tag. Some deny access to a name that does not exist.
_ABSENT = ("not found", "manifest unknown", "name unknown", "manifest_unknown", "name_unknown", "does not exist",
           "denied")


class ReleaseError(Exception):
    """A release that cannot be made or continued; the message says what to do."""


@dataclass(frozen=True)
class Image:
    """An image of a service; ``flavour`` is "" or "cuda"."""

    service: str
    flavour: str = ""

    @property
    def name(self) -> str:
        """The image's name in files: rollout, optimizer-cuda."""
        return f"{self.service}-{self.flavour}" if self.flavour else self.service


ALL_IMAGES = (*(Image(service) for service in SERVICES.values()), *(Image(service, "cuda") for service in CUDA))


@dataclass(frozen=True)
class Release:
    """A version to release from the checkout ``root``."""

    version: str
    root: Path
    folder: Path
    commit: str
    registry: str
    images: tuple[Image, ...] = ALL_IMAGES
    branch: str = "main"
    docker: str = "docker"
    helm: str = "helm"
    syft: str = "syft"
    cosign: str = ""  # "" does not sign
    cosign_key: str = ""
    plain_http: bool = False
    remote: str = ""
    base: str = BASE
    pin_base: bool = True  # False builds on what the tag names at that moment

    @property
    def tag(self) -> str:
        """The git tag."""
        return f"v{self.version}"

    def repository(self, image: Image) -> str:
        """Return the image's name without a tag."""
        return f"{self.registry}/five/{image.service}"

    def reference(self, image: Image) -> str:
        """Return the image's name with its tag."""
        return f"{self.repository(image)}:{self.version}{'-' + image.flavour if image.flavour else ''}"

    @property
    def chart_repository(self) -> str:
        """The chart's name without a tag, as cosign expects it."""
        return f"{self.registry}/charts/five"


@dataclass
class Record:
    """Record of what a release has published so far, in release.json. Digests are `sha256:...`."""

    path: Path
    commit: str
    registry: str
    images: dict[str, str] = field(default_factory=dict)
    pinned: dict[str, str] = field(default_factory=dict)  # images of others: by tag, then by tag and digest
    chart: str = ""
    signed: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, release: Release) -> "Record":
        """Return the record of an earlier attempt, or an empty one. Raise ReleaseError if it is of another release."""
        record = cls(release.folder / "release.json", release.commit, release.registry)
        if record.path.is_file():
            stored = json.loads(record.path.read_text(encoding="utf-8"))
            for key in ("commit", "registry"):
                if stored[key] != getattr(record, key):
                    raise ReleaseError(f"{record.path} has {key} {stored[key]}, this release {getattr(record, key)}: "
                                       f"continue that release, or remove {release.folder}")
            record.images, record.chart, record.signed = stored["images"], stored["chart"], stored["signed"]
            record.pinned = stored.get("pinned", {})
        return record

    def save(self) -> None:
        """Replace the file in one step."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        values = {key: value for key, value in vars(self).items() if key != "path"}
        partial.write_text(json.dumps(values, indent=2), encoding="utf-8")
        partial.replace(self.path)


class Commands:
    """Runs commands in ``root``. Those that change something are printed first; a dry run prints them only."""

    def __init__(self, root: Path, dry_run: bool) -> None:
        self.dry_run = dry_run
        self._root = root

    def query(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command that changes nothing and return its result. Raise ReleaseError if it cannot be started."""
        try:
            return subprocess.run(command, cwd=self._root, text=True, capture_output=True, check=False)
        except OSError as error:
            raise ReleaseError(f"{command[0]}: {error.strerror}") from None

    def change(self, *command: str, **environment: str) -> str:
        """Print and run a command and return its standard output and error, or '' in a dry run. Raise ReleaseError with
        its output if it fails."""
        set_first = [f"{name}={value}" for name, value in environment.items()]
        print("$ " + shlex.join([*set_first, *command]), flush=True)
        if self.dry_run:
            return ""
        done = self.query("env", *set_first, *command)
        output = done.stdout + done.stderr
        if done.returncode:
            raise ReleaseError(f"{shlex.join(command)} ended with {done.returncode}:\n{output[-4000:].rstrip()}\n"
                               "Run the same release again to continue from here.")
        return output

    def attended(self, *command: str) -> None:
        """Print and run a command that may ask questions on the terminal. Raise ReleaseError if it fails."""
        print("$ " + shlex.join(command), flush=True)
        if not self.dry_run and subprocess.run(command, cwd=self._root, check=False).returncode:
            raise ReleaseError(f"{shlex.join(command)} failed. Run the same release again to continue from here.")

    def pull(self, *command: str) -> str | None:
        """Run a pull and return its output, or None if the registry has no such name or in a dry run. Raise
        ReleaseError for any other failure."""
        print("$ " + shlex.join(command), flush=True)
        if self.dry_run:
            return None
        done = self.query(*command)
        output = done.stdout + done.stderr
        if done.returncode == 0:
            return output
        if any(text in output.lower() for text in _ABSENT):
            return None
        raise ReleaseError(f"{shlex.join(command)} ended with {done.returncode}:\n{output[-2000:].rstrip()}")
