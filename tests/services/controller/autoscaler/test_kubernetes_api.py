"""The official client against a simulated Kubernetes server: sizes, conflicts, refusals, silence."""

import contextlib
import re
import socket
import subprocess
import threading
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
    deployment_of,
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
    ("pods", lambda api: api.set_deletion_cost("a", -1), "cannot set the deletion cost of pod 'a': 403"),
])
def test_forbidden_request_names_the_role(api: KubernetesApi, server: ApiServer, deny: str, call: object,
                                          words: str) -> None:
    server.deny.add(deny)
    with pytest.raises(ApiFailed, match=words) as caught:
        call(api)  # type: ignore[operator]
    assert (type(caught.value), caught.value.status) == (ApiFailed, 403), "only status 409 is a conflict"
    assert server.deployments["five-rollout"] == 4


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
        assert time.monotonic() - began < server.delay and caught.value.status == 0


def test_refused_connection_is_reported_at_once(server: ApiServer) -> None:
    with serving(server) as port:
        pass
    with pytest.raises(ApiFailed, match="does not respond") as caught:
        connected(port).scale("five-rollout")
    assert caught.value.status == 0


@pytest.mark.parametrize(("code", "body", "words"), [
    (422, {"message": "spec.replicas: Invalid value"}, "422 spec.replicas: Invalid value$"),
    (500, "<html>a proxy</html>", "500 Internal Server Error$"), (503, "", "503 Service Unavailable$"),
    (500, {"kind": "Status"}, "500 Internal Server Error$"), (500, ["message"], "500 Internal Server Error$"),
    (410, {"message": "gone"}, "410 gone$"), (408, {"message": "late"}, "408 late$"), (402, {"message": "pay"}, "pay$"),
    (405, {"message": "no"}, "405 no$"), (401, {"message": "who?"}, r"401 who\?$")])
def test_refusal_has_the_servers_reason(api: KubernetesApi, server: ApiServer, code: int, body: object, words: str
                                        ) -> None:
    server.given = code, body
    with pytest.raises(ApiFailed, match=words) as caught:
        api.scale("five-rollout")
    assert (type(caught.value), caught.value.status) == (ApiFailed, code)


def test_invalid_response_is_a_failure(api: KubernetesApi, server: ApiServer) -> None:
    server.given = 200, {"metadata": {"name": "x"}, "items": [{"metadata": {"name": "a"}, "spec": {}}]}
    with pytest.raises(ApiFailed, match=r"(?s)cannot list pods: invalid response .*containers") as caught:
        api.pods("a=b")
    assert caught.value.status == 0


METADATA = {"name": "five-rollout", "resourceVersion": "7"}


@pytest.mark.parametrize(("given", "expected"), [
    ({"metadata": METADATA, "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=b"}}, (3, 2, "a=b", "7")),
    ({"metadata": METADATA, "spec": {}, "status": {"replicas": 0}}, (0, 0, "", "7")),
    ({"metadata": {"name": "five-rollout"}, "spec": {"replicas": 1}}, (1, 0, "", ""))],
    ids=["all", "no pods", "no status"])
def test_absent_fields_of_a_scale_are_zero_or_empty(api: KubernetesApi, server: ApiServer, given: dict[str, object],
                                                    expected: tuple[int, int, str, str]) -> None:
    """The API server leaves zeros out."""
    server.given = 200, given
    assert api.scale("five-rollout") == expected


def test_pods_are_read_page_by_page(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "POD_PAGE", 2)
    server.pods = {"a": {}, "b": {DELETION_COST: "-1"}, "c-ending": {DELETION_COST: "?"}, "d": {DELETION_COST: "12"},
                   "e": {DELETION_COST: "--1"}}
    with serving(server) as port:
        api = connected(port)
        assert api.pods("app.kubernetes.io/component=rollout") == [
            Pod("a", False, 0), Pod("b", False, -1), Pod("c-ending", True, 0), Pod("d", False, 12), Pod("e", False, 0)]
        api.set_deletion_cost("d", -1)
    assert server.pods["d"] == {DELETION_COST: "-1"} and len(server.requests) == 4


def test_outside_a_cluster_there_is_no_api(tmp_path: Path) -> None:
    with pytest.raises(OutsideCluster, match="no Kubernetes service account"):
        KubernetesApi.in_cluster(1.0, tmp_path, {})
    with pytest.raises(OutsideCluster, match="token"):
        KubernetesApi.in_cluster(1.0, tmp_path, {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"})


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders with the certificates of two authorities (ca.crt); with server.pem, the first can also serve."""
    folders = tmp_path_factory.mktemp("trusted"), tmp_path_factory.mktemp("other")
    for folder in folders:
        try:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-keyout", "key.pem", "-out", "ca.crt", "-days", "2", "-subj", "/CN=kubernetes", "-addext",
                            "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True, cwd=folder)
        except FileNotFoundError:
            pytest.skip("openssl is not installed")
        (folder / "server.pem").write_text((folder / "key.pem").read_text() + (folder / "ca.crt").read_text())
    return folders


def account(folder: Path, authority: Path, **files: str) -> Path:
    """Write a service account that trusts an authority."""
    for name, text in {"token": TOKEN, "namespace": "five\n", "ca.crt": (authority / "ca.crt").read_text(),
                       **files}.items():
        (folder / name).write_text(text)
    return folder


def in_cluster(port: int, folder: Path) -> KubernetesApi:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return KubernetesApi.in_cluster(2.0, folder, environ)


def test_a_pod_reaches_it_over_tls_with_its_account(server: ApiServer, tmp_path: Path, certificates: tuple[Path, Path]
                                                    ) -> None:
    trusted, other = certificates
    with serving(server, trusted / "server.pem") as port:
        api = in_cluster(port, account(tmp_path, trusted))
        assert api.namespace == "five" and api.scale("five-inference").replicas == 2
        with pytest.raises(ApiFailed, match="401"):
            in_cluster(port, account(tmp_path, trusted, token="another")).scale("five-inference")
        with pytest.raises(ApiFailed, match="(?i)certificate") as caught:
            in_cluster(port, account(tmp_path, other)).scale("five-inference")
        assert caught.value.status == 0


def test_account_without_a_namespace_is_none(tmp_path: Path, certificates: tuple[Path, Path]) -> None:
    (account(tmp_path, certificates[0]) / "namespace").unlink()
    with pytest.raises(OutsideCluster, match="namespace"):
        in_cluster(1, tmp_path)


def test_failed_request_is_not_repeated(tmp_path: Path, certificates: tuple[Path, Path]) -> None:
    """The autoscaler's next pass is the repetition."""
    connections = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def hang_up() -> None:
            nonlocal connections
            with contextlib.suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    connections += 1
                    connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ApiFailed):
            in_cluster(listener.getsockname()[1], account(tmp_path, certificates[0])).scale("five-rollout")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert connections == 1


@pytest.mark.parametrize("deployment", [
    "five-rollout", "five-inference-past", "p" * 36 + "-inference", "p" * 37 + "-inference", "p" * 40 + "-inference",
    "p" * 40 + "-inference-past"])
def test_deployment_is_read_from_a_cut_pod_name(deployment: str) -> None:
    assert deployment_of(f"{deployment}-7c5ddbf9b4-"[:58] + "x2k9q") == deployment


def test_other_names_have_no_deployment() -> None:
    assert deployment_of("laptop") == deployment_of("") == ""
