"""Certificates cover every dialled name, by the rules of gRPC and Redis clients."""

import asyncio
import re
import subprocess
from pathlib import Path

import grpc
import pytest

from five.run.load import load
from rapid.config import RpcConfig, TlsConfig
from rapid.rpc.health import is_serving
from rapid.rpc.server import serve
from tests.charts.rendering import CHART, NAMESPACE, RELEASE, Values, find, objects, pods, run, run_config
from tests.charts.test_network import host_port, services_of

CERT_MANAGER = ("tls.grpc.enabled=true", "tls.redis.enabled=true", "tls.certManager.issuerRef.name=ca")
ISSUED = Values("tls", sets=CERT_MANAGER)
ISSUED_REMOTE = Values("tls, games apart", sets=(*CERT_MANAGER, "dotaEnv.placement=deployment", "optimizer.replicas=2",
                                                 "inference.pools.past.serves=past"))


def covers(name: str, host: str) -> bool:
    """Return whether a certificate name covers a host by gRPC's rule: a wildcard is the whole first label, above two
    others."""
    if not name.startswith("*."):
        return name == host
    first, _, rest = host.partition(".")
    return bool(first) and rest == name[2:] and "." in rest.rstrip(".")


@pytest.mark.parametrize("values", [ISSUED, ISSUED_REMOTE], ids=lambda v: v.name)
def test_every_address_is_in_the_certificate(values: Values, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(run_config(values))
    config = load(path)
    certificate = find(values, "Certificate", "grpc")["spec"]
    for address in services_of(config):
        host = address.rpartition(":")[0]
        assert any(covers(n, host) for n in (*certificate["dnsNames"], *certificate["ipAddresses"])), host
    names = find(values, "Certificate", "redis")["spec"]["dnsNames"]
    for url in (config.store.state_url, config.store.params_url):
        assert url.startswith("rediss://") and host_port(url)[0] in names


def test_certificates_match_issuer_and_mounted_secrets() -> None:
    for name, secret in (("grpc", "five-grpc-tls"), ("redis", "five-redis-tls")):
        spec = find(ISSUED, "Certificate", name)["spec"]
        assert spec["secretName"] == secret
        assert spec["issuerRef"] == {"name": "ca", "kind": "Issuer", "group": "cert-manager.io"}
        assert any(v.get("secret", {}).get("secretName") == secret for _, _, s in pods(objects(ISSUED))
                   for v in s["volumes"])


def test_a_given_secret_takes_the_certificates_place() -> None:
    values = Values("given", sets=("tls.grpc.enabled=true", "tls.grpc.existingSecret=ours", "tls.redis.enabled=true",
                                   "tls.redis.existingSecret=ours-redis"))
    assert not objects(values, "Certificate")
    used = {v["secret"]["secretName"] for _, _, s in pods(objects(values)) for v in s["volumes"] if "secret" in v}
    made = ("five-caller", "five-redis-", "five-api-tokens", "five-test-token")  # tokens and passwords
    assert {name for name in used if not name.startswith(made)} == {"ours", "ours-redis"}


def test_redis_serves_tls_alone() -> None:
    for role in ("state", "params"):
        lines = find(ISSUED, "ConfigMap", f"redis-{role}")["data"]["redis.conf"].splitlines()
        assert "port 0" in lines and "tls-port 6379" in lines
        assert "port 6379" in find(Values("defaults"), "ConfigMap", f"redis-{role}")["data"]["redis.conf"].splitlines()


def test_redis_reads_its_certificates_again() -> None:
    """tests/charts/test_redis_certificates.py runs the script; this test checks the objects around it."""
    script = (CHART / "files" / "redis-certificates.sh").read_text()
    for kind, role in (("StatefulSet", "state"), ("Deployment", "params")):
        config = find(ISSUED, "ConfigMap", f"redis-{role}")["data"]
        assert config["certificates.sh"].strip() == script.strip()
        assert {"aclfile /run/five-redis/users.acl", "unixsocket /run/five-redis/redis.sock"} <= set(
            config["redis.conf"].splitlines())
        spec = find(ISSUED, kind, f"redis-{role}")["spec"]["template"]["spec"]
        server, watch = spec["containers"]
        probed = {"command": watch["livenessProbe"]["exec"]["command"]}
        assert [c["command"] for c in (server, watch, probed)] == [
            ["sh", "/etc/five-redis/conf/start.sh"],
            *(["sh", "/etc/five-redis/conf/certificates.sh", what] for what in ("watch", "alive"))]
        assert {v["name"]: v for v in spec["volumes"]}["run"]["emptyDir"]["medium"] == "Memory"
        needed = {"/etc/five-redis/conf", "/etc/five-redis/tls", "/run/five-redis"}
        assert {m["mountPath"] for m in watch["volumeMounts"]} == needed
        assert needed | {"/etc/five-redis/users"} <= {m["mountPath"] for m in server["volumeMounts"]}
        assert "env" not in watch and watch["image"] == server["image"]
        plain = find(Values("defaults"), kind, f"redis-{role}")["spec"]["template"]["spec"]
        assert [c["name"] for c in plain["containers"]] == ["redis"]
        assert "certificates.sh" not in find(Values("defaults"), "ConfigMap", f"redis-{role}")["data"]


def test_external_redis_uses_given_or_system_ca() -> None:
    outside = ("redis.state.external.host=a", "redis.params.external.host=b", "tls.redis.enabled=true")
    known = Values("known authority", sets=outside)
    assert "tls_authority" not in run_config(known) and "rediss://a:6379/0" in run_config(known)
    given = Values("given authority", sets=(*outside, "tls.redis.existingSecret=ca-of-redis"))
    assert "tls_authority: /etc/five/redis-tls/ca.crt" in run_config(given)
    assert not objects(known, "Certificate") and not objects(given, "Certificate")


def certificate(folder: Path, names: list[str]) -> TlsConfig:
    """Create a certificate with these names, signed by its own authority, with openssl."""
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca", "-days", "1")
    openssl("req", *key, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=five")
    (folder / "names").write_text("subjectAltName=" + ",".join(f"DNS:{n}" for n in names))
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-extfile", "names", "-out", "tls.crt")
    return TlsConfig(authority=str(folder / "ca.crt"), certificate=str(folder / "tls.crt"), key=str(folder / "tls.key"))


def test_grpc_takes_the_wildcard_for_an_optimizers_pod(tmp_path: Path) -> None:
    """Performs a real handshake under a pod's name with the names of the rendered certificate."""
    tls = certificate(tmp_path, find(ISSUED, "Certificate", "grpc")["spec"]["dnsNames"])
    pod = f"five-optimizer-1.five-optimizer.{NAMESPACE}.svc"

    async def answers(name: str) -> bool:
        server = await serve("127.0.0.1:0", [], RpcConfig(require_token=False, tls=tls))
        try:
            asked = RpcConfig(require_token=False, tls=TlsConfig(authority=tls.authority, server_name=name))
            return await asyncio.to_thread(is_serving, f"127.0.0.1:{server.port}", asked, "", 3.0)
        finally:
            await server.stop(0)

    assert asyncio.run(answers(pod))
    assert asyncio.run(answers("five-inference"))
    assert not asyncio.run(answers("five-optimizer-1.five-optimizer")), "the short name is what no wildcard covers"
    assert grpc.__version__


def test_the_readme_and_the_notes_name_all_that_is_dialled(tmp_path: Path) -> None:
    """Includes 127.0.0.1, at which rollouts dial the games in their own pod."""
    readme = (CHART / "README.md").read_text()
    section = readme[readme.index("## TLS"):readme.index("## Network")]
    named = set(re.findall(r"`([^`\s]+)`", section))
    given = ("tls.grpc.enabled=true", "tls.grpc.existingSecret=ours")
    done = run("helm4", "install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client",
               *Values("", sets=given).arguments())
    notes = done.stdout.partition("\nNOTES:\n")[2]
    for placement in ("sidecar", "deployment"):
        path = tmp_path / "run.yaml"
        path.write_text(run_config(Values(f"given {placement}", sets=(*given, f"dotaEnv.placement={placement}"))))
        for address in services_of(load(path)):
            host = address.rpartition(":")[0]
            assert any(covers(n.replace(".five.svc", f".{NAMESPACE}.svc"), host) for n in named), host
            if placement == "sidecar":
                assert any(covers(n.strip(","), host) for n in notes.split()), host
