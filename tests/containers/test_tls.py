"""docker-compose.yml with deploy/compose/tls.yml: mutual TLS, with certificates and the callers' secrets rotated during
training.

The default is a tiny run. FIVE_ROTATION_SECONDS runs the preset's full size, for that time with rotation and as long
without: the time between versions is printed and kept in build/faults/rotation-compose.txt.
"""

import os

import pytest

from tests.containers.engine import ROOT, SERVICES, Project, docker, eventually
from tests.e2e.pace import Changes, Watch

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]
SECONDS = float(os.environ.get("FIVE_ROTATION_SECONDS", "0"))
ROUNDS = 3 if SECONDS else 1
PROJECT = "five-test-tls"
OVER = ("tls.yml",) if SECONDS else ("smoke.yml", "tls.yml")
FILES = {"authority": "/etc/five/tls/ca.crt", "certificate": "/etc/five/tls/tls.crt", "key": "/etc/five/tls/tls.key"}
CHANGES = {"rpc": {"listen_host": "0.0.0.0", "tls": {**FILES, "require_client_certificate": True}}}

# Asks a server how it is: in the clear, and as the run's services do.
ASK = """
import sys
from five.run.load import load
from rapid.rpc.health import is_serving
rpc = load("/etc/five/run.yaml").rpc
print(is_serving(sys.argv[1], rpc.model_copy(update={"tls": None})), is_serving(sys.argv[1], rpc))
"""
# Tells one certificate that a server shows from another.
SHOWN = """
import ssl, sys
host, _, port = sys.argv[1].rpartition(":")
print(hash(ssl.get_server_certificate((host, int(port)))))
"""


def inside(project: Project, program: str, target: str) -> str:
    """Return the output of a Python program in the rollout's container."""
    (rollout,) = project.containers("rollout")
    return docker("exec", "-e", "PYTHONHASHSEED=0", rollout, "python", "-c", program, target).strip()


def fresh(project: Project, known: list[str]) -> str:
    """Return the certificate that inference presents, or None while it is a known one."""
    now = inside(project, SHOWN, "inference:50051")
    return "" if now in known else now


@pytest.mark.parametrize("target", ["inference:50051", "dota-env:50051", "optimizer:50051", "opponents:50051"])
def test_calls_are_taken_under_tls_alone(project: Project, target: str) -> None:
    assert inside(project, ASK, target) == "False True"


def test_certificates_and_the_token_change_while_it_trains(project: Project) -> None:
    project.wait_version(max(project.version(), 0) + 2, 600)
    before = {name: project.containers(name) for name in SERVICES}
    shown, tokens = [inside(project, SHOWN, "inference:50051")], [project.secret["FIVE_ROLLOUT_SECRET"]]
    changes = Changes()

    def change() -> None:
        project.certify()
        project.rotate("token")

    with Watch(project.version, 0.1).on() as watch:
        for _ in range(ROUNDS):
            ended = changes.measure(watch, max(SECONDS / ROUNDS, 3.0), change)
            tokens.append(project.secret["FIVE_ROLLOUT_SECRET"])
            shown.append(eventually(lambda: fresh(project, shown), 180, "the new certificate is shown"))
        eventually(lambda: watch.at and watch.at[-1] > ended, 300, "a version after the last change")
    assert len(set(shown)) == len(set(tokens)) == ROUNDS + 1
    assert {name: project.containers(name) for name in SERVICES} == before, "nobody was replaced"
    logs = project.compose("logs", "--no-color")
    assert "UNAUTHENTICATED" not in logs and "no valid token" not in logs
    assert not [token for token in tokens if token in logs]
    if SECONDS:
        text = changes.told(f"{ROUNDS} changes of certificates and token in {SECONDS:g} s of training on compose")
        print(text)
        (ROOT / "build" / "faults").mkdir(parents=True, exist_ok=True)
        (ROOT / "build" / "faults" / "rotation-compose.txt").write_text(text + "\n")
