"""Consistency of rendered workloads that schemas cannot check, and their security settings."""

import copy
import re
from collections import Counter

import pytest

from rapid.telemetry.probe import SECONDS
from tests.charts.rendering import CHART, Object, Values, containers, find, matches, objects, pods, run_config

DEFAULTS = Values("defaults")
CONTROLLERS = ("Deployment", "StatefulSet")


def test_selectors_match_the_pods_and_no_others(values: Values) -> None:
    found = [o for o in objects(values) if o["kind"] in CONTROLLERS]
    for o in found:
        selector = o["spec"]["selector"]
        assert set(selector["matchLabels"]) <= {
            "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component",
            "five/inference-pool"}, "a selector can never be changed: nothing in it may change with a version"
        taken = [p["metadata"]["name"] for p in found if matches(selector, p["spec"]["template"]["metadata"]["labels"])]
        assert taken == [o["metadata"]["name"]], taken


def test_every_service_selects_pods_with_its_ports(values: Values) -> None:
    for service in objects(values, "Service"):
        name, spec = service["metadata"]["name"], service["spec"]
        selected = [p for _, meta, p in pods(objects(values)) if matches({"matchLabels": spec["selector"]},
                                                                         meta["labels"])]
        assert selected, f"{name} selects nothing"
        for port in spec["ports"]:
            for pod in selected:
                offered = {p["name"]: p["containerPort"] for c in pod["containers"] for p in c.get("ports", [])}
                assert port["targetPort"] in offered, (name, port)
                if port["port"] != offered[port["targetPort"]]:
                    raise AssertionError(f"{name}: clients dial {port['port']}, pods listen elsewhere")


def test_statefulsets_have_their_headless_service(values: Values) -> None:
    services = {s["metadata"]["name"]: s for s in objects(values, "Service")}
    for o in objects(values, "StatefulSet"):
        assert o["spec"]["serviceName"] in services
    optimizer = services["five-optimizer"]["spec"]
    assert optimizer["clusterIP"] == "None" and optimizer["publishNotReadyAddresses"] is True
    assert find(values, "StatefulSet", "optimizer")["spec"]["podManagementPolicy"] == "Parallel"


def test_ports_of_a_pod_are_named_and_numbered_once(values: Values) -> None:
    for name, _, spec in pods(objects(values)):
        ports = [p for c in containers(spec) for p in c.get("ports", [])]
        for key in ("name", "containerPort"):
            twice = [v for v, n in Counter(p[key] for p in ports).items() if n > 1]
            assert not twice, (name, twice)
        assert all(re.fullmatch(r"[a-z0-9-]{1,15}", p["name"]) for p in ports), name


def probe_port(probe: Object, container: Object) -> int | None:
    """Return the number of the port that a probe uses; None for a command."""
    for way in ("httpGet", "tcpSocket", "grpc"):
        if way in probe:
            port = probe[way]["port"]
            return next((p["containerPort"] for p in container["ports"] if port in (p["name"], p["containerPort"])), -1)
    return None


def test_probes(values: Values) -> None:
    """Each long-running container has all three probes at its own ports; liveness never depends on a peer."""
    group = values_optimizers(values) > 1
    for name, _, spec in pods(o for o in objects(values) if o["kind"] in CONTROLLERS):
        for c in spec["containers"]:
            if c["name"] == "optimizer" and group:
                assert "readinessProbe" not in c
                for kind in ("startupProbe", "livenessProbe"):
                    *probe, port, ranks, waiting = c[kind]["exec"]["command"]
                    assert probe == ["python", "-m", "rapid.telemetry.probe"] and port == "9100"
                    assert f"--ranks={ranks}" in c["args"] and waiting in c["args"]
                    assert c[kind]["timeoutSeconds"] > SECONDS
                # Machines and images may take an hour.
                assert c["startupProbe"]["periodSeconds"] * c["startupProbe"]["failureThreshold"] > 3600
                continue
            if c["name"] == "certificates":
                assert "livenessProbe" in c and "readinessProbe" not in c  # it serves nobody
                continue
            for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert kind in c, (name, c["name"], kind)
                assert probe_port(c[kind], c) != -1, (name, kind)
            assert c["livenessProbe"].get("httpGet", {}).get("path") != "/readyz", name
            assert "grpc" not in c["livenessProbe"], "gRPC health is readiness: it may follow peers"
            startup = c["startupProbe"]["periodSeconds"] * c["startupProbe"]["failureThreshold"]
            assert startup >= 120, "a start may take minutes"


def values_optimizers(values: Values) -> int:
    """Return the number of optimizers in the run's configuration."""
    found = re.search(r"^    optimizers: (\d+)$", run_config(values), re.M)
    assert found
    return int(found[1])


def test_grpc_is_probed_natively_unless_it_is_encrypted() -> None:
    probe = find(DEFAULTS, "Deployment", "inference")["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["grpc"] == {"port": 50051}
    tls = Values("tls", sets=("tls.grpc.enabled=true", "tls.grpc.existingSecret=s"))
    probe = find(tls, "Deployment", "inference")["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_clients_of_the_rest_api_cannot_fail_its_probes() -> None:
    """The port of the metrics page has no Service, so that its connections are the kubelet's and Prometheus' alone."""
    container = find(DEFAULTS, "Deployment", "controller")["spec"]["template"]["spec"]["containers"][0]
    assert {probe_port(container[kind], container) for kind in ("startupProbe", "livenessProbe", "readinessProbe")} == {
        9100}
    assert [port["targetPort"] for port in find(DEFAULTS, "Service", "controller")["spec"]["ports"]] == ["http"]


def test_requests_and_limits(values: Values) -> None:
    for name, _, spec in pods(objects(values)):
        for c in containers(spec):
            for side in ("requests", "limits"):
                for what in ("cpu", "memory"):
                    assert c["resources"][side].get(what), (name, c["name"], side, what)
            gpus = [k for k in c["resources"]["requests"] if "/" in k]
            assert not gpus, "GPUs are asked for in the limits"


def violations(meta: Object, spec: Object) -> list[str]:
    """Return a pod's violations of the Pod Security standard "restricted", which includes "baseline"."""
    found = []
    pod = spec.get("securityContext", {})
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            found.append(field)
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
               "secret"}
    for volume in spec.get("volumes", []):
        if not set(volume) - {"name"} <= allowed:
            found.append(f"volume {volume['name']}")
    if pod.get("sysctls") or pod.get("windowsOptions", {}).get("hostProcess"):
        found.append("sysctls or hostProcess")
    if any("apparmor" in key for key in meta.get("annotations", {})):
        found.append("apparmor annotation")
    for c in containers(spec):
        own = c.get("securityContext", {})

        def effective(field: str, own: Object = own) -> object:
            return own.get(field, pod.get(field))

        name = c["name"]
        if own.get("privileged") or own.get("procMount", "Default") != "Default":
            found.append(f"{name}: privileged or procMount")
        if own.get("allowPrivilegeEscalation") is not False:
            found.append(f"{name}: allowPrivilegeEscalation")
        if effective("runAsNonRoot") is not True or effective("runAsUser") in (0, None):
            found.append(f"{name}: runs as root, or may")
        profile = effective("seccompProfile") or {}
        if not isinstance(profile, dict) or profile.get("type") not in ("RuntimeDefault", "Localhost"):
            found.append(f"{name}: seccompProfile")
        capabilities = own.get("capabilities", {})
        if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
            found.append(f"{name}: capabilities")
        if any(p.get("hostPort") for p in c.get("ports", [])):
            found.append(f"{name}: hostPort")
    return found


def test_pod_security_restricted(values: Values) -> None:
    """Root file systems are read-only as well, which the standard does not require."""
    if "rdma" in values.name:
        return  # IPC_LOCK is beyond the standard, and who runs it is the cluster's: test_pod_settings.py
    for name, meta, spec in pods(objects(values)):
        assert not violations(meta, spec), name
        user = spec["securityContext"]
        assert user["runAsUser"] == user["runAsGroup"] == user["fsGroup"] >= 10000, "no user of the node's own"
        assert all(c["securityContext"].get("readOnlyRootFilesystem") is True for c in containers(spec)), name


@pytest.mark.parametrize("change", [
    lambda s: s.update(hostNetwork=True),
    lambda s: s["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
    lambda s: s["securityContext"].pop("seccompProfile"),
    lambda s: s["securityContext"].update(runAsNonRoot=False),
    lambda s: s["containers"][0]["securityContext"].update(allowPrivilegeEscalation=True),
    lambda s: s["containers"][0]["securityContext"].update(privileged=True),
    lambda s: s["containers"][0]["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
    lambda s: s["containers"][0]["ports"][0].update(hostPort=80)])
def test_violations_are_found(change) -> None:  # type: ignore[no-untyped-def]
    template = copy.deepcopy(find(DEFAULTS, "Deployment", "inference")["spec"]["template"])
    change(template["spec"])
    assert violations(template["metadata"], template["spec"])


def test_only_autoscaling_controller_has_account_token(values: Values) -> None:
    scaled = "autoscaler:" in run_config(values)
    for name, _, spec in pods(objects(values)):
        assert spec["automountServiceAccountToken"] is (scaled and name == "Deployment/five-controller"), name
        assert spec["enableServiceLinks"] is False, name
    for account in objects(values, "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_the_controller_has_the_cloud_identity_for_a_bucket() -> None:
    def identities(*sets: str) -> dict[str, Object]:
        values = Values(" ".join(sets), sets=("global.serviceAccount.annotations.role=blobs", *sets))
        return {o["metadata"]["name"]: o["metadata"].get("annotations", {}) for o in objects(values, "ServiceAccount")}

    both = {"five": {"role": "blobs"}, "five-controller": {"role": "blobs"}}
    assert identities("blobs.url=gs://bucket/five") == both
    assert identities() == both | {"five-controller": {}}, "it has no part in a volume"
    own = identities("blobs.url=gs://bucket/five", "controller.serviceAccount.annotations.role=own")
    assert own == both | {"five-controller": {"role": "own"}}


def test_the_controller_may_only_scale_two_deployments() -> None:
    mode = Values("autoscaler", sets=("autoscaling.mode=controller",))
    assert find(mode, "Role", "controller")["rules"] == [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"],
         "resourceNames": ["five-rollout", "five-inference"], "verbs": ["get", "patch"]}]
    assert not objects(DEFAULTS, "Role") and not objects(DEFAULTS, "RoleBinding")


def test_roles_name_objects_that_are_there(values: Values) -> None:
    names = {o["metadata"]["name"] for o in objects(values, "Deployment")}
    for role in objects(values, "Role"):
        for rule in role["rules"]:
            assert "*" not in (*rule["verbs"], *rule["resources"], *rule["apiGroups"])
            assert set(rule.get("resourceNames", [])) <= names
    accounts = {o["metadata"]["name"] for o in objects(values, "ServiceAccount")}
    for binding in objects(values, "RoleBinding"):
        assert binding["subjects"][0]["name"] in accounts | {"five-control"}


@pytest.mark.parametrize(("mode", "owned"), [("none", False), ("controller", True), ("hpa", True), ("keda", True)])
def test_no_replicas_where_an_autoscaler_owns_them(mode: str, owned: bool) -> None:
    values = Values(mode, sets=(f"autoscaling.mode={mode}",))
    for name in ("rollout", "inference"):
        assert ("replicas" not in find(values, "Deployment", name)["spec"]) is owned
    assert find(values, "StatefulSet", "optimizer")["spec"]["replicas"] == 1


def test_horizontal_pod_autoscalers_scale_existing_workloads(values: Values) -> None:
    deployments = {o["metadata"]["name"]: o for o in objects(values, "Deployment")}
    for hpa in objects(values, "HorizontalPodAutoscaler"):
        target = deployments[hpa["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in target["spec"]
        assert hpa["spec"]["minReplicas"] <= hpa["spec"]["maxReplicas"]


def test_autoscalers_follow_work_with_cpu_as_fallback() -> None:
    by_work = Values("hpa by signals", sets=("autoscaling.mode=hpa",))
    for name, metric in (("rollout", "five_unpaced_sample_reuse"), ("inference", "five_inference_queue_seconds_p95")):
        (asked,) = find(by_work, "HorizontalPodAutoscaler", name)["spec"]["metrics"]
        assert asked["external"]["metric"] == {"name": metric, "selector": {"matchLabels": {"run": "five"}}}
    by_cpu = Values("cpu", sets=("autoscaling.mode=hpa", "autoscaling.hpa.cpuFallback=true"))
    (asked,) = find(by_cpu, "HorizontalPodAutoscaler", "rollout")["spec"]["metrics"]
    assert asked["resource"]["name"] == "cpu"


def test_each_inference_pool_follows_its_own_queue() -> None:
    values = Values("two pools", sets=("autoscaling.mode=hpa", "inference.pools.past.serves=past",
                                       "monitoring.serviceMonitor.enabled=true"))
    followed = {}
    for name in ("inference", "inference-past"):
        (asked,) = find(values, "HorizontalPodAutoscaler", name)["spec"]["metrics"]
        followed[name] = asked["external"]["metric"]["selector"]["matchLabels"]
    assert followed == {"inference": {"run": "five", "five_inference_pool": "default"},
                        "inference-past": {"run": "five", "five_inference_pool": "past"}}
    (monitor,) = objects(values, "ServiceMonitor")
    for name in followed:
        template = find(values, "Deployment", name)["spec"]["template"]
        assert set(monitor["spec"]["podTargetLabels"]) <= template["metadata"]["labels"].keys()


def test_pods_of_the_platforms_images_select_their_architecture() -> None:
    for values, wanted in ((DEFAULTS, "amd64"), (Values("arm", sets=("global.image.architecture=arm64",)), "arm64"),
                           (Values("any", sets=("global.image.architecture=",)), None)):
        for name, _, spec in pods(objects(values)):
            of_redis = name.split("/")[1].startswith("five-redis-")
            assert spec.get("nodeSelector", {}).get("kubernetes.io/arch") == (None if of_redis else wanted), name


def test_rollouts_let_the_cluster_autoscaler_remove_their_nodes() -> None:
    """It keeps a node with an emptyDir on disk, unless the annotation names the volume. Others stay protected."""
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
    named = {}
    for name, meta, spec in pods(objects(Values("games apart", sets=("dotaEnv.placement=deployment",)))):
        on_disk = [v["name"] for v in spec["volumes"] if "emptyDir" in v and v["emptyDir"].get("medium") != "Memory"]
        if key in meta.get("annotations", {}):
            assert meta["annotations"][key].split(",") == on_disk, name
            named[name] = on_disk
    assert named.keys() == {"Deployment/five-rollout", "Deployment/five-dota-env"}
    escaped = key.replace(".", "\\.")
    own = Values("own", sets=(f"rollout.podAnnotations.{escaped}=other",))
    assert find(own, "Deployment", "rollout")["spec"]["template"]["metadata"]["annotations"][key] == "other"


def test_redis_serves_until_its_clients_have_drained(values: Values) -> None:
    found = list(pods(o for o in objects(values) if o["kind"] in CONTROLLERS))
    longest = max(spec["terminationGracePeriodSeconds"] for name, _, spec in found if "redis" not in name and
                  "dota-env" not in name)
    for name, _, spec in found:
        if "redis" in name:
            command = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            assert command[:3] == ["sh", "/etc/five-redis/conf/stop.sh", str(longest)], name
            assert spec["terminationGracePeriodSeconds"] > longest, name


def test_claim_templates_have_the_defaults_of_kubernetes(values: Values) -> None:
    """GitOps clients compare the rendered list with the stored one."""
    for o in objects(values, "StatefulSet"):
        for claim in o["spec"].get("volumeClaimTemplates", []):
            assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
            assert claim["spec"]["volumeMode"] == "Filesystem"


def test_disruption_budgets_select_pods_and_never_block_a_drain(values: Values) -> None:
    for budget in objects(values, "PodDisruptionBudget"):
        spec = budget["spec"]
        assert any(matches(spec["selector"], meta["labels"]) for _, meta, _ in pods(objects(values)))
        asked_for = "rdma" in values.name and budget["metadata"]["name"] == "five-redis-state"
        assert "minAvailable" not in spec and (spec["maxUnavailable"] not in (0, "0%") or asked_for)


def test_pods_restart_when_their_configuration_changes() -> None:
    """test_restarts.py covers each component."""
    def checksums(values: Values) -> dict[str, str]:
        return {name: meta["annotations"]["checksum/run-config"] for name, meta, _ in pods(objects(values))
                if "checksum/run-config" in meta.get("annotations", {})}

    before, same = checksums(DEFAULTS), checksums(Values("no change", sets=("monitoring.dashboards.enabled=true",)))
    after = checksums(Values("name", sets=("run.name=other",)))
    assert before == same
    assert set(before) == {f"Deployment/five-{c}" for c in
                           ("controller", "evaluator", "inference", "opponents", "rollout")} | {
                               "StatefulSet/five-optimizer"}
    assert all(before[name] != after[name] for name in before)


def test_volumes_fit_mounts(values: Values) -> None:
    configs = {o["metadata"]["name"] for o in objects(values, "ConfigMap")}
    claims = {o["metadata"]["name"] for o in objects(values, "PersistentVolumeClaim")} | {"five-blobs-of-ours"}
    templates = {(f"StatefulSet/{o['metadata']['name']}", t["metadata"]["name"]) for o in objects(values, "StatefulSet")
                 for t in o["spec"].get("volumeClaimTemplates", [])}
    for name, _, spec in pods(objects(values)):
        volumes = {v["name"] for v in spec.get("volumes", [])} | {v for pod, v in templates if pod == name}
        mounted = {m["name"] for c in containers(spec) for m in c.get("volumeMounts", [])}
        assert volumes == mounted, (name, volumes ^ mounted)
        for c in containers(spec):
            paths = [m["mountPath"] for m in c.get("volumeMounts", [])]
            assert len(paths) == len(set(paths)), (name, paths)
        for volume in spec.get("volumes", []):
            assert volume.get("configMap", {}).get("name", "five-run") in configs
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "five-blobs-of-ours") in claims


def test_optimizers_have_memory_backed_shared_memory(values: Values) -> None:
    spec = find(values, "StatefulSet", "optimizer")["spec"]["template"]["spec"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]
    shm = next(v for v in spec["volumes"] if v["name"] == "shm")
    assert shm["emptyDir"]["medium"] == "Memory" and shm["emptyDir"]["sizeLimit"]


def test_parts_with_gpus_have_images_for_cuda() -> None:
    def images(*sets: str) -> set[str]:
        values = Values("gpus", files=(str(CHART / "values-gpu-node.yaml"),), sets=("global.image.tag=t", *sets))
        return {c["image"] for _, _, spec in pods(objects(values)) for c in containers(spec)}

    assert {image for image in images() if "-cuda" in image} == {"five/inference:t-cuda", "five/optimizer:t-cuda"}
    own = images("optimizer.image.tag=mine", "inference.image.repository=team/inference")
    assert {"five/optimizer:mine", "team/inference:t"} <= own
    digest = f"sha256:{'0' * 64}"
    assert f"five/optimizer@{digest}" in images(f"optimizer.image.digest={digest}")
