"""Client for the parts of the Kubernetes API that the autoscaler uses: the scale subresource of two Deployments.

The controller's service account needs exactly this in its own namespace:

    apiGroups: ["apps"]
    resources: ["deployments/scale"]
    resourceNames: [<the rollout Deployment>, <the inference Deployment>]
    verbs: ["get", "patch"]

and, only with ``services.controller.autoscaler.deletion_cost`` (off by default), also:

    apiGroups: [""]
    resources: ["pods"]
    verbs: ["list", "patch"]

It needs no ``list`` or ``watch`` of Deployments, no events, and nothing outside the namespace: decisions are recorded
as events of the run. The pod needs ``automountServiceAccountToken: true`` and a NetworkPolicy that lets it reach the
API server. The Deployments' names are ``services.controller.autoscaler.rollout.deployment`` and
``.inference.deployment``.

All calls block, have a timeout and are not retried: the autoscaler runs again a few seconds later.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
POD_PAGE = 500
RANDOM_SUFFIX = 5  # random characters at the end of a pod's name
# Ends of messages, by the status of a request for that kind of object.
_DEPLOYMENT_ADVICE = {403: "; the controller's Role needs get and patch of deployments/scale with this name",
                      404: "; check services.controller.autoscaler.*.deployment"}
_POD_ADVICE = {403: "; the controller's Role needs list and patch of pods, or switch "
               "services.controller.autoscaler.deletion_cost off"}


class DeploymentScale(NamedTuple):
    """A Deployment's scale: requested ``replicas``, existing pods ``present``, the pods' label selector, and the
    resource ``version``. A write with an outdated version is refused.
    """

    replicas: int
    present: int
    selector: str
    version: str


class Pod(NamedTuple):
    """A pod of a Deployment: its name, whether it is terminating, and its deletion cost."""

    name: str
    ending: bool
    cost: int


class ApiFailed(ConnectionError):
    """Error of a failed request. ``status`` is the HTTP status, or 0 without a response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ResourceConflict(ApiFailed):
    """Error of a write to an object that was changed since it was read."""


class OutsideCluster(RuntimeError):
    """Error of a process that does not run in a pod with a service account."""


class KubernetesApi:
    """Sizes of Deployments in one namespace, through the scale subresource. Blocking and thread-safe."""

    def __init__(self, api: client.ApiClient, namespace: str, timeout_seconds: float) -> None:
        self.namespace = namespace
        self._apps = client.AppsV1Api(api)
        self._core = client.CoreV1Api(api)
        self._timeout = (timeout_seconds, timeout_seconds)  # connect, read

    @classmethod
    def in_cluster(cls, timeout_seconds: float, account: Path = ACCOUNT,
                   environ: Mapping[str, str] = os.environ) -> "KubernetesApi":
        """Return a client that uses the pod's service account and follows its token's rotation. Raise
        OutsideCluster."""
        configuration = client.Configuration()
        configuration.retries = False
        try:
            loader: Any = InClusterConfigLoader  # has no type annotations
            loader(str(account / "token"), str(account / "ca.crt"), environ=environ).load_and_set(configuration)
            configuration.proxy = None  # the API server is inside the cluster: no proxy variable applies
            namespace = (account / "namespace").read_text(encoding="utf-8").strip()
        except (ConfigException, OSError) as error:
            raise OutsideCluster(f"no Kubernetes service account found ({str(error).rstrip('.')})") from None
        return cls(client.ApiClient(configuration), namespace, timeout_seconds)

    def scale(self, deployment: str) -> DeploymentScale:
        """Return a Deployment's scale. Raise ApiFailed."""
        what = f"cannot read the scale of Deployment {deployment!r}"
        found = self._call(what, _DEPLOYMENT_ADVICE, self._apps.read_namespaced_deployment_scale, deployment,
                           self.namespace)
        return _scale(found)

    def resize(self, deployment: str, replicas: int, version: str) -> DeploymentScale:
        """Request ``replicas`` pods. Raise ResourceConflict if the object is no longer at ``version``, and
        ApiFailed for other failures."""
        body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}}
        what = f"cannot scale Deployment {deployment!r} to {replicas} replicas"
        found = self._call(what, _DEPLOYMENT_ADVICE, self._apps.patch_namespaced_deployment_scale, deployment,
                           self.namespace, body)
        return _scale(found)

    def pods(self, selector: str) -> list[Pod]:
        """Return the pods that match a label selector. Raise ApiFailed."""
        pods: list[Pod] = []
        token: str | None = None
        while token != "":
            page = self._call("cannot list pods", _POD_ADVICE, self._core.list_namespaced_pod, self.namespace,
                              label_selector=selector, limit=POD_PAGE, _continue=token)
            pods += [_pod(item) for item in page.items]
            token = page.metadata._continue or ""
        return pods

    def set_deletion_cost(self, pod: str, cost: int) -> None:
        """Set a pod's deletion cost: pods with a lower cost are removed first. Ignore a pod that no longer exists.
        Raise ApiFailed."""
        body = {"metadata": {"annotations": {DELETION_COST: str(cost)}}}
        try:
            self._call(f"cannot set the deletion cost of pod {pod!r}", _POD_ADVICE, self._core.patch_namespaced_pod,
                       pod, self.namespace, body)
        except ApiFailed as error:
            if error.status != 404:
                raise

    def _call(self, what: str, advice: Mapping[int, str], function: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, _request_timeout=self._timeout, **options)
        except ApiException as error:
            status = int(error.status or 0)
            kind = ResourceConflict if status == 409 else ApiFailed
            raise kind(status, f"{what}: {status} {_reason(error)}{advice.get(status, '')}") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiFailed(0, f"{what}: the Kubernetes API does not respond ({error})") from None
        except ValueError as error:
            raise ApiFailed(0, f"{what}: invalid response ({error})") from None


def deployment_of(pod: str) -> str:
    """Return the name of a pod's Deployment.

    A pod is called DEPLOYMENT-HASH-RANDOM. Kubernetes cuts DEPLOYMENT-HASH- at 58 characters, so a long name ends
    within the hash and has no "-" before the random characters.
    """
    return pod[:-RANDOM_SUFFIX].removesuffix("-").rpartition("-")[0]


def _scale(found: Any) -> DeploymentScale:
    status = found.status
    return DeploymentScale(found.spec.replicas or 0, status.replicas if status else 0,
                           (status.selector or "") if status else "", found.metadata.resource_version or "")


def _pod(found: Any) -> Pod:
    try:
        cost = int((found.metadata.annotations or {}).get(DELETION_COST, "0"))
    except ValueError:
        cost = 0
    return Pod(found.metadata.name, found.metadata.deletion_timestamp is not None, cost)


def _reason(error: ApiException) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
