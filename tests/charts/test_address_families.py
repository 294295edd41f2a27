"""Services and URLs of clusters with IPv6 or both families, behind an Ingress path, and of a Redis with Sentinels."""

from pathlib import Path

from rapid.store.sentinel import parse_sentinel_url
from tests.charts.rendering import Values, find, objects
from tests.charts.test_run_config import loaded

DUAL = Values("dual-stack", sets=("global.ipFamilyPolicy=PreferDualStack", "global.ipFamilies={IPv6,IPv4}",
                                  "dotaEnv.placement=deployment", "play.enabled=true"))


def test_every_service_has_the_families() -> None:
    services = objects(DUAL, "Service")
    assert len(services) >= 9
    for service in services:
        assert service["spec"]["ipFamilyPolicy"] == "PreferDualStack"
        assert service["spec"]["ipFamilies"] == ["IPv6", "IPv4"]
    for service in objects(Values("defaults"), "Service"):
        assert not {"ipFamilyPolicy", "ipFamilies"} & service["spec"].keys()


def test_ingress_path_is_the_prefix(tmp_path: Path) -> None:
    values = Values("below-a-path", sets=("controller.ingress.enabled=true", "controller.ingress.path=/five/",
                                          "networkPolicy.controllerFrom[0].ipBlock.cidr=10.0.0.0/8"))
    assert loaded(values, tmp_path).services.controller.path_prefix == "/five"
    assert loaded(Values("defaults"), tmp_path).services.controller.path_prefix == ""


def test_external_redis_may_be_an_ipv6_address(tmp_path: Path) -> None:
    values = Values("ipv6-redis", sets=("redis.state.external.host=fd00::7",))
    assert loaded(values, tmp_path).store.state_url == "redis://[fd00::7]:6379/0"


def test_external_redis_may_be_behind_sentinels(tmp_path: Path) -> None:
    values = Values("sentinels", sets=(
        r"redis.state.external.host=redis-0\,redis-1", "redis.state.external.port=26379",
        "redis.state.external.sentinel.primary=mine", "redis.state.external.sentinel.redisPort=6380"))
    found = parse_sentinel_url(loaded(values, tmp_path).store.state_url)
    assert (found.sentinels, found.primary) == ((("redis-0", 26379), ("redis-1", 26379)), "mine")
    policy = find(values, "NetworkPolicy", "controller")["spec"]
    ports = {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}
    assert {26379, 6380} <= ports
