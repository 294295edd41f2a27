"""Networks of docker-compose.yml: two containers share one exactly if one of them calls the other."""

from itertools import combinations
from typing import Any

import pytest
import yaml

from tests.containers.engine import ROOT
from tests.service_graph import CALLS, SCRAPED

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
BUCKET: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose/bucket.yml").read_text())
Pair = frozenset[str]

# Calls of compose's own containers.
OWN = {"prometheus": SCRAPED, "grafana": {"prometheus"}, "admin": {"redis-state", "redis-params"}}
# Pairs that share a network although neither calls the other. An engine's default address pools have room for 30
# networks, and a smoke test runs beside the run.
EXTRA = {
    frozenset(("admin", "controller")): "admin serves nothing, and its password opens more than the controller",
    frozenset(("admin", "evaluator")): "the same",
    frozenset(("grafana", "controller")): "both have published ports with a login",
}
MOST_NETWORKS = 15  # two projects fit


def pairs(networks: dict[str, set[str]]) -> set[Pair]:
    """Return the pairs of containers that share a network."""
    return {frozenset(pair) for members in networks.values() for pair in combinations(sorted(members), 2)}


def members() -> dict[str, set[str]]:
    """Return the containers of each network. A service without networks would be in `default`."""
    found: dict[str, set[str]] = {name: set() for name in COMPOSE["networks"]}
    for name, service in COMPOSE["services"].items():
        if service.get("network_mode") != "none":
            for network in service.get("networks", ["default"]):
                found.setdefault(network, set()).add(name)
    return found


def test_containers_reach_those_they_call_and_no_others() -> None:
    called = {frozenset((caller, other)) for caller, others in {**CALLS, **OWN}.items() for other in others}
    wanted = {pair for pair in called if len(pair) == 2}
    assert pairs(members()) - wanted == EXTRA.keys()
    assert wanted - pairs(members()) == set()


@pytest.mark.parametrize(("one", "other"), [
    ("dota-env", "redis-state"), ("dota-env", "redis-params"), ("rollout", "redis-params"), ("rollout", "play"),
    ("prometheus", "redis-state"), ("play", "optimizer"), ("opponents", "optimizer")])
def test_compromised_container_cannot_reach(one: str, other: str) -> None:
    assert frozenset((one, other)) not in pairs(members())


def test_only_containers_with_ports_reach_the_internet() -> None:
    open_networks = {name for name, network in COMPOSE["networks"].items() if not (network or {}).get("internal")}
    assert open_networks == {"outside", "clients"}
    published = {name for name, service in COMPOSE["services"].items() if "ports" in service}
    # A port of a container whose networks are all internal cannot be published.
    assert members()["outside"] | members()["clients"] == published
    # What anybody may call is in no network with the console.
    assert members()["clients"] == {"dotaservice", "prometheus"}
    assert len(members()) <= MOST_NETWORKS and all(len(found) > 1 for found in members().values())


def test_bucket_file_opens_the_object_store_to_users_of_blobs() -> None:
    mount = {name for name, service in COMPOSE["services"].items()
             if any(str(volume).startswith("blobs:") for volume in service.get("volumes", []))}
    added = {name: service["networks"] for name, service in BUCKET["services"].items()}
    assert added.keys() == mount - {"controller"}, "the controller has a network with a way out"
    # A network each: they reach one another no more than before.
    assert {network for (network,) in added.values()} == BUCKET["networks"].keys()
    assert len(BUCKET["networks"]) == len(added)
    assert not any((network or {}).get("internal") for network in BUCKET["networks"].values())
