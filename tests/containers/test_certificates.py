"""deploy/compose/make-certificates.sh and tls.yml, without an engine. tests/containers/test_tls.py runs them."""

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.containers.engine import ROOT, SERVICES

TLS = yaml.safe_load((ROOT / "deploy/compose/tls.yml").read_text())
RUN = yaml.safe_load((ROOT / "deploy/compose/run.yaml").read_text())
MADE = ("ca.crt", "tls.crt", "tls.key")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the script with a fresh .env, whose secrets are in env.d."""
    subprocess.run([ROOT / "deploy/compose/make-env.sh", tmp_path / "env"], check=True, capture_output=True)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "deploy/compose/make-certificates.sh", *arguments], capture_output=True,
                              text=True, check=False, env={"PATH": "/usr/bin:/bin", "ENV_FILE": str(tmp_path / "env")})

    return call


def openssl(*arguments: str | Path) -> str:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def test_every_service_has_the_certificates_where_the_page_says() -> None:
    assert TLS["services"].keys() == set(SERVICES)
    (mount,) = TLS["services"]["controller"]["volumes"]
    page = (ROOT / "docs/containers.md").read_text()
    assert mount["source"] == "${FIVE_SECRETS:-./.five}/private/tls" and mount["read_only"]
    assert [f"{mount['target']}/{name}" in page for name in MADE] == [True] * 3


def test_a_certificate_has_the_names_that_are_dialled(make: Callable[..., subprocess.CompletedProcess[str]],
                                                      tmp_path: Path) -> None:
    assert make("7").returncode == 0
    folder = tmp_path / "env.d/private/tls"
    assert {path.name for path in folder.iterdir()} == set(MADE)
    said = openssl("verify", "-CAfile", folder / "ca.crt", folder / "tls.crt")
    assert said.strip().endswith("OK")
    names = openssl("x509", "-in", folder / "tls.crt", "-noout", "-ext", "subjectAltName")
    services = RUN["services"].values()
    dialled = {a.partition(":")[0] for s in services for a in [*s.get("addresses", []), s.get("address", "")] if a}
    assert len(dialled) == 6
    dialled |= set(re.findall(r"\b(five-optimizer-\d+):", (ROOT / "docs/containers.md").read_text()))
    assert len(dialled) == 8 and [name for name in dialled if f"DNS:{name}" not in names] == []
    week = 7 * 24 * 3600
    assert "will not" in openssl("x509", "-in", folder / "tls.crt", "-noout", "-checkend", str(week - 3600))
    # The service's key is read through a folder that its owner alone enters; the authority's is the owner's.
    private = tmp_path / "env.d/private"
    assert stat.S_IMODE(private.stat().st_mode) == stat.S_IMODE((private / "authority").stat().st_mode) == 0o700
    assert stat.S_IMODE((private / "authority/ca/ca.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o644


def test_a_further_call_keeps_the_authority(make: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
                                            ) -> None:
    folder = tmp_path / "env.d/private/tls"
    assert make().returncode == 0
    first = {name: (folder / name).read_text() for name in MADE}
    assert make().returncode == 0
    second = {name: (folder / name).read_text() for name in MADE}
    assert [name for name in MADE if first[name] == second[name]] == ["ca.crt"]
    assert sorted(path.name for path in (tmp_path / "env.d/private/authority").iterdir()) == ["ca"], "nothing is left"


def test_invalid_certificates_are_reported(make: Callable[..., subprocess.CompletedProcess[str]],
                                           tmp_path: Path) -> None:
    for days in ("0", "soon"):
        done = make(days)
        assert done.returncode == 2 and "good for DAYS" in done.stdout
    (tmp_path / "env").write_text("FIVE_ROLLOUT_SECRET=x\n")
    done = make()
    assert done.returncode == 2 and "has no FIVE_SECRETS" in done.stderr
    (tmp_path / "env").unlink()
    assert "`make env` writes it" in make().stderr
