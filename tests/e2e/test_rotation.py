"""Rotation of certificates and of the callers' secrets in a run that trains: no process restarts, nothing is refused,
and versions are published throughout. Measurements are printed and stored (build/faults/rotation-*.txt) for
docs/reliability.md."""

import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from five.clients.evaluator import EvaluatorClient
from five.local import rotation
from rapid.rpc.access import Caller
from rapid.rpc.errors import CallFailed, StatusCode
from tests.e2e.pace import Changes, Watch
from tests.e2e.running import KINDS, ROOT, Run, eventually
from tests.rapid.test_tls import Authority

# Seconds of training without changes, and as many with them. Where a version takes a second, the noise of a machine's
# other work is as long as it; at the preset's own size it takes ten.
SECONDS = {"tiny": 60.0, "laptop-1v1": float(os.environ.get("FIVE_ROTATION_SECONDS", "240"))}
ROUNDS = 3


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


async def refused(run: Run, secret: str) -> bool:
    """Return whether the evaluator refuses the command's secret."""
    config = run.config
    client = EvaluatorClient([config.services.evaluator.address], config.rpc, config.name, secret)
    try:
        await client.ratings()
        return False
    except CallFailed as error:
        assert error.code is StatusCode.UNAUTHENTICATED, error
        return True
    finally:
        await client.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("size", SECONDS)
async def test_certificates_and_secrets_rotate_during_training(run: Run, tmp_path: Path, size: str) -> None:
    seconds = SECONDS[size]
    authority, place = Authority(tmp_path / "authority"), tmp_path / "tls"
    tls = authority.issue(place, "IP:127.0.0.1")
    sets = ["services.rollout.environment=remote", "services.evaluator.cpu_share=0.05",
            "rpc.tls.require_client_certificate=true",
            *(f"rpc.tls.{name}={getattr(tls, name)}" for name in ("authority", "certificate", "key"))]
    if size == "tiny":
        # More games than it learns from: versions come at the pace of learning, not of games that end.
        run.start_new("services.rollout.games=16", *sets)
    else:
        run.start("--preset", size, "--name", run.folder.name, "--seed", "1", "--set", "services.controller.port=0",
                  *(part for override in sets for part in ("--set", override)))
    run.wait_version(3)
    pids = {name: run.pids(name) for name in KINDS}
    host, _, port = run.config.services.inference.addresses[0].rpartition(":")
    shown, secrets = [ssl.get_server_certificate((host, int(port)))], [run.folder.cli_secret().secret()]
    changes = Changes()

    def change() -> None:
        authority.issue(place, "IP:127.0.0.1")
        rotation.rotate_secrets(run.folder, list(Caller))

    with Watch(run.head).on() as watch:
        for _ in range(ROUNDS):
            ended = changes.measure(watch, seconds / ROUNDS, change)
            secrets.append(run.folder.cli_secret().secret())
            shown.append(ssl.get_server_certificate((host, int(port))))
            assert [await refused(run, secret) for secret in secrets[-2:]] == [True, False]
        eventually(lambda: watch.at and watch.at[-1] > ended, 60, "a version after the last change")
    assert len(set(shown)) == len(set(secrets)) == ROUNDS + 1
    assert {name: run.pids(name) for name in KINDS} == pids, "nobody had to begin again"
    logs = {path.name: path.read_text() for path in (run.folder.path / "logs").glob("*-0.log")}
    said = "\n".join(logs.values())
    assert not [secret for secret in secrets if secret in said]
    assert "UNAUTHENTICATED" not in said and "no valid token" not in said
    # A process reads its files at its next call. Streams of rollouts and full-size games outlast the test.
    if size == "tiny":
        assert "caller secret reloaded" in logs["rollout-0.log"]
        assert all("callers reloaded" in logs[name] for name in ("inference-0.log", "evaluator-0.log"))
    text = changes.told(f"{ROUNDS} changes of certificates and secrets in {seconds:g} s of {size} training")
    print(text)
    (ROOT / "build" / "faults").mkdir(parents=True, exist_ok=True)
    (ROOT / "build" / "faults" / f"rotation-{size}.txt").write_text(text + "\n")
