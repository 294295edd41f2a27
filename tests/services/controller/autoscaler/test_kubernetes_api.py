"""The official client against a simulated Kubernetes server: sizes, conflicts, refusals, silence."""

import re
import subprocess
import time
from pathlib import Path

import pytest

from five.services.controller.autoscaler import kubernetes_api
from five.services.controller.autoscaler.kubernetes_api import (
    DELETION_COST,
    ApiFailed,
    KubernetesApi,
    OutsideCluster,
    Pod,
    ResourceConflict,
)
from tests.services.controller.autoscaler.kubernetes_server import TOKEN, ApiServer, connected, serving


def test_a_size_is_read_and_set(api: KubernetesApi, server: ApiServer) -> None:
    found = api.scale("five-rollout")
    assert (found.replicas, found.present, found.selector) == (4, 4, "app.kubernetes.io/component=five-rollout")
    assert api.resize("five-rollout", 6, found.version).replicas == 6
    assert server.deployments == {"five-rollout": 6, "five-inference": 2}


def test_only_the_scale_subresource_is_touched(api: KubernetesApi, server: ApiServer) -> None:
    """The Role in the module's docstring is sufficient: exactly these paths, with get and patch."""
    api.resize("five-rollout", 6, api.scale("five-rollout").version)
    path = "/apis/apps/v1/namespaces/five/deployments/five-rollout/scale"
    assert server.requests == [("GET", path), ("PATCH", path)]
    words = re.sub(r"\s+", " ", kubernetes_api.__doc__ or "")
    assert 'resources: ["deployments/scale"]' in words and 'verbs: ["get", "patch"]' in words


def test_a_write_to_an_object_that_changed_is_refused(api: KubernetesApi, server: ApiServer) -> None:
    found = api.scale("five-rollout")
    server.resize("five-rollout", 9)
    with pytest.raises(ResourceConflict, match="409 Operation cannot be fulfilled"):
        api.resize("five-rollout", 6, found.version)
    assert server.deployments["five-rollout"] == 9


@pytest.mark.parametrize(("deny", "call", "words"), [
    ("get", lambda api: api.scale("five-rollout"), r"cannot read the scale of Deployment 'five-rollout': 403 .*Role"),
    ("patch", lambda api: api.resize("five-rollout", 9, ""), r"cannot scale Deployment .* to 9 replicas: 403 .*patch"),
    ("pods", lambda api: api.pods("a=b"), "cannot list pods: 403"),
])
def test_forbidden_request_names_the_role(api: KubernetesApi, server: ApiServer, deny: str, call: object,
                                              words: str) -> None:
    server.deny.add(deny)
    with pytest.raises(ApiFailed, match=words) as caught:
        call(api)  # type: ignore[operator]
    assert caught.value.status == 403 and server.deployments["five-rollout"] == 4


def test_a_missing_deployment_names_the_setting(api: KubernetesApi) -> None:
    with pytest.raises(ApiFailed, match=r"'other'.*404.*services.controller.autoscaler"):
        api.scale("other")


def test_a_silent_server_costs_the_timeout_only(server: ApiServer) -> None:
    server.delay = 3.0
    with serving(server) as port:
        api = connected(port, timeout_seconds=0.2)
        began = time.monotonic()
        with pytest.raises(ApiFailed, match="does not respond") as caught:
            api.scale("five-rollout")
        assert time.monotonic() - began < 1.5 and caught.value.status == 0


def test_refused_connection_is_reported_at_once(server: ApiServer) -> None:
    with serving(server) as port:
        pass
    with pytest.raises(ApiFailed, match="does not respond"):
        connected(port).scale("five-rollout")


def test_pods_are_read_page_by_page(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "POD_PAGE", 2)
    server.pods = {"a": {}, "b": {DELETION_COST: "-1"}, "c-ending": {DELETION_COST: "?"}, "d": {}, "e": {}}
    with serving(server) as port:
        api = connected(port)
        assert api.pods("app.kubernetes.io/component=rollout") == [
            Pod("a", False, 0), Pod("b", False, -1), Pod("c-ending", True, 0), Pod("d", False, 0), Pod("e", False, 0)]
        api.set_deletion_cost("d", -1)
    assert server.pods["d"] == {DELETION_COST: "-1"} and len(server.requests) == 4


def test_outside_a_cluster_there_is_no_api(tmp_path: Path) -> None:
    with pytest.raises(OutsideCluster, match="no Kubernetes service account"):
        KubernetesApi.in_cluster(1.0, tmp_path, {})
    with pytest.raises(OutsideCluster, match="token"):
        KubernetesApi.in_cluster(1.0, tmp_path, {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"})


def test_a_pod_reaches_it_over_tls_with_its_account(server: ApiServer, tmp_path: Path) -> None:
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", "key.pem", "-out", "ca.crt", "-days", "2", "-subj", "/CN=kubernetes", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, cwd=tmp_path)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    both = tmp_path / "server.pem"
    both.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "ca.crt").read_text())
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("five\n")
    with serving(server, both) as port:
        environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        api = KubernetesApi.in_cluster(2.0, tmp_path, environ)
        assert api.namespace == "five" and api.scale("five-inference").replicas == 2
        (tmp_path / "token").write_text("another")
        with pytest.raises(ApiFailed, match="401"):
            KubernetesApi.in_cluster(2.0, tmp_path, environ).scale("five-inference")
