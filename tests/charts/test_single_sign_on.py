"""The values of docs/single-sign-on.md: the proxy reaches the controller and nothing else does."""

import re
from pathlib import Path

import pytest
import yaml

from tests.charts.rendering import ROOT, Values, objects

PAGE = (ROOT / "docs/single-sign-on.md").read_text()
BLOCKS = [yaml.safe_load(re.sub(r"^ {3}", "", block, flags=re.M))
          for block in re.findall(r"^ *```yaml\n(.*?)^ *```$", PAGE, re.M | re.S)]


@pytest.fixture
def values(tmp_path: Path) -> Values:
    """The page's values of Five, with those for a path."""
    files = []
    for index, block in enumerate(block for block in BLOCKS if "run" in block):
        files.append(tmp_path / f"{index}.yaml")
        files[-1].write_text(yaml.safe_dump(block))
    return Values(f"single sign-on in {tmp_path}", tuple(map(str, files)))


def test_only_the_proxy_is_let_in_besides_the_release(values: Values) -> None:
    (policy,) = [o for o in objects(values, "NetworkPolicy") if o["metadata"]["name"] == "five-controller"]
    outside = [peer for rule in policy["spec"]["ingress"] if 8080 in [port["port"] for port in rule["ports"]]
               for peer in rule["from"] if "namespaceSelector" in peer]
    (proxy,) = [block["networkPolicy"]["controllerFrom"] for block in BLOCKS if "networkPolicy" in block]
    assert outside == proxy
    assert not objects(values, "Ingress")


def test_the_proxys_upstream_is_the_controllers_service(values: Values) -> None:
    (options,) = [block["config"]["configFile"] for block in BLOCKS if "config" in block]
    assert 'upstreams = ["http://five-controller.five.svc:8080/"]' in options
    (service,) = [o for o in objects(values, "Service") if o["metadata"]["name"] == "five-controller"]
    assert [port["port"] for port in service["spec"]["ports"]] == [8080]


def test_the_run_gets_the_path_and_the_trusted_proxies(values: Values) -> None:
    (run,) = [yaml.safe_load(o["data"]["run.yaml"]) for o in objects(values, "ConfigMap") if "run.yaml" in o["data"]]
    controller = run["services"]["controller"]
    assert controller["path_prefix"] == "/five" and controller["trusted_proxies"][-1] == "10.244.0.0/16"
