"""Network policies allow exactly the calls that the services make."""

import re
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
import yaml

from five.run.config import RunConfig
from five.run.load import load
from rapid.store import acl
from tests.charts.rendering import CHART, ROOT, Object, Values, containers, matches, objects, pods, run_config
from tests.service_graph import CALLS, SCRAPED

Edge = tuple[str, str, int]  # caller, called, port
COMPONENT = "app.kubernetes.io/component"
SERVICES = tuple(CALLS)
ANY_PORT = 0
DOTASERVICE = ("dotaservice.enabled=true", "dotaservice.allowFrom[0].podSelector.matchLabels.app=trainer")


def services_of(config: RunConfig) -> list[str]:
    """Return every configured address at which one service calls another."""
    services = config.services
    found = [*services.inference.addresses, *services.inference.past_addresses, *services.dota_env.addresses,
             services.opponents.address]
    found += [services.optimizer.address(rank) for rank in range(services.optimizer.optimizers)]
    return found + ([services.evaluator.address] if services.evaluator.enabled else [])


def called_in_code(component: str) -> set[str]:
    """Return the services whose address sections a service's own code reads."""
    found: set[str] = set()
    for file in (ROOT / "services" / component.replace("-", "_")).rglob("*.py"):
        named = r"\.services\.(inference|optimizer|opponents|dota_env|evaluator|play)\b"
        found |= set(re.findall(named, file.read_text()))
    return {name.replace("_", "-") for name in found} - {component}


def host_port(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    return host, int(port)


def wanted(values: Values, folder: Path) -> set[Edge]:
    """Derive the calls between pods from the services' code, their configuration, and the placement of pods."""
    path = folder / "run.yaml"
    path.write_text(run_config(values))
    config = load(path)
    services = config.services
    addresses = {"inference": [*services.inference.addresses, *services.inference.past_addresses],
                 "opponents": [services.opponents.address],
                 "optimizer": [services.optimizer.address(r) for r in range(services.optimizer.optimizers)],
                 "dota-env": [a for a in services.dota_env.addresses if not a.startswith("127.0.0.1")]}
    present = {meta["labels"][COMPONENT] for _, meta, _ in pods(objects(values))}
    stores = [host_port(url) for url in (config.store.state_url, config.store.params_url)]
    inside = [(host.removeprefix("five-"), port) for host, port in stores if host.startswith("five-")]
    if services.evaluator.enabled:
        addresses["evaluator"] = [services.evaluator.address]
    if services.play.enabled:
        addresses["play"] = [services.play.address]
    edges: set[Edge] = set()
    for component in present & set(SERVICES):
        edges |= {(component, called, int(a.rpartition(":")[2])) for called in called_in_code(component)
                  for a in addresses.get(called, [])}
        # rapid.service connects a service to the stores in which it has a user; games have none.
        edges |= {(component, store, port) for store, port in inside
                  if store.removeprefix("redis-") in acl.roles_of(component.replace("-", "_"))}
    edges.add(("optimizer", "optimizer", ANY_PORT))
    if "test" in present:
        edges |= {("test", "controller", services.controller.port), *(("test", store, port) for store, port in inside)}
        edges |= {("test", called, int(a.rpartition(":")[2])) for called in addresses for a in addresses[called]}
    return edges


def policies(values: Values) -> dict[str, Object]:
    """Return the policies by component; the default-deny policy has the key ''."""
    return {p["spec"]["podSelector"]["matchLabels"].get(COMPONENT, ""): p["spec"]
            for p in objects(values, "NetworkPolicy")}


def peers(rule: Object, side: str, components: set[str]) -> set[str]:
    """Return the release's components that a rule's peers select."""
    labels = {c: {"app.kubernetes.io/name": "five", "app.kubernetes.io/instance": "five", COMPONENT: c}
              for c in components}
    return {c for peer in rule.get(side, []) if "podSelector" in peer and "namespaceSelector" not in peer
            for c in components if matches(peer["podSelector"], labels[c])}


def allowed(values: Values, side: str) -> set[Edge]:
    """Return the edges that the egress ("to") or the ingress ("from") rules allow."""
    found = policies(values)
    components = set(found) - {""}
    edges = set()
    for component, spec in found.items():
        for rule in spec.get({"to": "egress", "from": "ingress"}[side]) or []:
            ports = [p["port"] for p in rule.get("ports", [{"port": ANY_PORT}])]
            for peer, port in product(peers(rule, side, components), ports):
                edges.add((component, peer, port) if side == "to" else (peer, component, port))
    return edges


def with_policies(values: Values) -> None:
    if not objects(values, "NetworkPolicy"):
        pytest.skip("policies are off in these values")


def test_the_policies_are_the_service_graph(values: Values, tmp_path: Path) -> None:
    with_policies(values)
    expected = wanted(values, tmp_path)
    assert allowed(values, "to") == expected
    assert allowed(values, "from") == expected


def test_the_code_is_read_right() -> None:
    for component, called in CALLS.items():
        assert called_in_code(component) == {c for c in called if not c.startswith("redis-")} - {component}


def test_the_policies_are_the_declared_graph() -> None:
    """docker-compose.yml's networks are compared with the same table."""
    values = Values("everything", sets=("dotaEnv.placement=deployment", "play.enabled=true", "backup.enabled=true",
                                        *DOTASERVICE))
    assert set(policies(values)) >= {*SERVICES, "redis-state", "redis-params"}
    for side in ("to", "from"):
        calls = {(caller, called) for caller, called, _ in allowed(values, side)}
        assert {edge for edge in calls if edge[0] in CALLS} == {(a, b) for a, others in CALLS.items() for b in others}
        assert {edge for edge in calls if edge[0] == "backup"} == {("backup", "redis-state")}
        assert {caller for caller, _ in calls} - CALLS.keys() == {"test", "backup"}
    scraped = {component for component, spec in policies(values).items() for rule in spec.get("ingress") or []
               for peer in rule["from"] if "namespaceSelector" in peer}
    assert scraped == SCRAPED


def test_every_pod_is_denied_first_and_has_its_own_policy(values: Values) -> None:
    with_policies(values)
    found = policies(values)
    assert found[""] == {"podSelector": found[""]["podSelector"], "policyTypes": ["Ingress", "Egress"]}
    for name, meta, _ in pods(objects(values)):
        assert matches(found[""]["podSelector"], meta["labels"]), name
        assert meta["labels"][COMPONENT] in found, name
    for component, spec in found.items():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
        if component:
            assert any(matches(spec["podSelector"], meta["labels"]) for _, meta, _ in pods(objects(values))), component


def test_callers_of_names_may_query_dns(values: Values) -> None:
    with_policies(values)
    for component, spec in policies(values).items():
        dns = [r for r in spec.get("egress") or [] if {"port": 53, "protocol": "UDP"} in r.get("ports", [])]
        assert bool(dns) is (component not in ("", "redis-state", "redis-params")), component


def test_dns_servers_on_the_node_are_reachable_at_port_53_alone() -> None:
    """No pod selector matches NodeLocal DNSCache or GKE's Cloud DNS, whose address is also the metadata server's."""
    rules = policies(Values("defaults"))["rollout"]["egress"]
    (dns,) = [rule for rule in rules if {"port": 53, "protocol": "UDP"} in rule["ports"]]
    assert {peer["ipBlock"]["cidr"] for peer in dns["to"] if "ipBlock" in peer} == {
        "169.254.20.10/32", "169.254.169.254/32"}
    assert {port["port"] for port in dns["ports"]} == {53}


def test_prometheus_reaches_every_page_and_nothing_else(values: Values) -> None:
    with_policies(values)
    pages: dict[str, set[int]] = defaultdict(set)
    for _, meta, spec in pods(objects(values)):
        pages[meta["labels"][COMPONENT]] |= {p["containerPort"] for c in containers(spec) for p in c.get("ports", [])
                                             if "metrics" in p["name"]}
    for component, spec in policies(values).items():
        ports = {p["port"] for r in spec.get("ingress") or [] for peer in r["from"] if "namespaceSelector" in peer
                 and peer.get("podSelector", {}).get("matchLabels") == {"app.kubernetes.io/name": "prometheus"}
                 for p in r["ports"]}
        assert ports == pages.get(component, set()), component


def egress_without_pods(values: Values, component: str) -> list[Object]:
    return [r for r in policies(values)[component]["egress"]
            if not any("podSelector" in peer for peer in r.get("to", [{}]))]


def test_only_the_autoscaler_reaches_the_kubernetes_api() -> None:
    values = Values("autoscaler", sets=("autoscaling.mode=controller",))
    assert [p["port"] for p in egress_without_pods(values, "controller")[0]["ports"]] == [443, 6443]
    assert not egress_without_pods(values, "rollout")
    assert not egress_without_pods(Values("defaults"), "controller")
    narrow = Values("narrow", sets=("autoscaling.mode=controller", "networkPolicy.kubernetesApiCidrs={10.0.0.1/32}"))
    assert egress_without_pods(narrow, "controller")[0]["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]


def test_object_store_is_reachable_for_its_users_only() -> None:
    values = Values("s3", sets=("blobs.url=s3://bucket/five",))
    reach = {c for c in policies(values) if c and c in SERVICES and egress_without_pods(values, c)}
    mounted = {meta["labels"][COMPONENT] for _, meta, spec in pods(objects(Values("defaults")))
               if any("persistentVolumeClaim" in v for v in spec.get("volumes", []))}
    assert mounted == {"inference", "optimizer", "evaluator"}
    assert reach == {*mounted, "controller"}
    services = ROOT / "services"
    asks = {f.relative_to(services).parts[0] for f in services.rglob("*.py") if "fetch_meta(" in f.read_text()}
    assert asks == {"controller", "inference"}, "services that read a version's metadata need the object store"


def test_credentials_of_the_object_store_are_reachable(tmp_path: Path) -> None:
    values = Values("s3", sets=("blobs.url=s3://bucket/five",))
    open_at = {(rule["to"][0]["ipBlock"]["cidr"], port["port"]) for rule in egress_without_pods(values, "optimizer")
               if "to" in rule for port in rule["ports"]}
    assert open_at == {("169.254.169.254/32", 80), ("169.254.169.254/32", 8080), ("169.254.169.252/32", 987),
                       ("169.254.169.252/32", 988), ("169.254.170.23/32", 80), ("fd00:ec2::23/128", 80)}
    assert not [r for r in egress_without_pods(values, "rollout") if "to" in r]
    (tmp_path / "none.yaml").write_text("networkPolicy: {blobsCredentials: []}\n")
    none = Values("s3-none", (str(tmp_path / "none.yaml"),), ("blobs.url=s3://bucket/five",))
    assert len(egress_without_pods(none, "optimizer")) == 1


def test_collector_of_traces_is_reachable_for_all_services(tmp_path: Path) -> None:
    def load_config(values: Values) -> RunConfig:
        path = tmp_path / "run.yaml"
        path.write_text(run_config(values))
        return load(path)

    assert load_config(Values("defaults")).tracing.endpoint is None
    values = Values("traced", sets=("tracing.endpoint=http://tempo.monitoring:4318",
                                    "run.overrides.tracing.sampled_steps=0.01"))
    tracing = load_config(values).tracing
    assert (tracing.endpoint, tracing.sampled_steps) == ("http://tempo.monitoring:4318", 0.01)
    traced = {c for c in policies(values) if c and any(port["port"] == 4318 for rule in egress_without_pods(values, c)
                                                       for port in rule["ports"])}
    assert traced == {c for c in policies(values) if c in SERVICES}


def test_only_pods_with_the_volume_are_bound_to_its_node() -> None:
    notes = (CHART / "templates/NOTES.txt").read_text()
    assert "keeps inference, optimizers and evaluator on one node" in notes
    assert not egress_without_pods(Values("defaults"), "controller"), "nothing to reach outside the cluster"


def test_redis_outside_the_release_is_reached_at_its_port() -> None:
    values = Values("outside", sets=("redis.state.external.host=a.example", "redis.state.external.port=6380"))
    for component in ("rollout", "inference", "optimizer", "opponents", "evaluator", "controller"):
        assert [{"port": 6380, "protocol": "TCP"}] in [r["ports"] for r in egress_without_pods(values, component)]
    assert "redis-state" not in policies(values) and "redis-params" in policies(values)


def test_redis_outside_the_release_is_closed_to_other_components() -> None:
    """Without networkPolicy.redisTo the rule allows every address, so games must not have it."""
    values = Values("both outside", sets=(
        "redis.state.external.host=a.example", "redis.state.external.port=6380", "redis.params.external.host=b.example",
        "redis.params.external.port=6381", "dotaEnv.placement=deployment", "backup.enabled=true", *DOTASERVICE))
    reach = {c: {port["port"] for rule in egress_without_pods(values, c) for port in rule["ports"]}
             for c in policies(values) if c}
    assert {c for c, ports in reach.items() if not ports} == {"dota-env", "dotaservice"}
    assert {c for c, ports in reach.items() if 6381 in ports} == {"controller", "inference", "optimizer", "test"}
    assert reach["rollout"] == reach["backup"] == {6380}


def test_the_controller_admits_the_configured_sources(tmp_path: Path) -> None:
    def strangers(values: Values) -> list[Object]:
        return [p for r in policies(values)["controller"]["ingress"] if {"port": 8080, "protocol": "TCP"} in r["ports"]
                for p in r["from"] if "namespaceSelector" in p]

    assert not strangers(Values("defaults"))
    file = tmp_path / "values.yaml"
    gateway = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateway"}}}
    file.write_text(yaml.safe_dump({"networkPolicy": {"controllerFrom": [gateway]}}))
    assert strangers(Values("open", (str(file),))) == [gateway]
