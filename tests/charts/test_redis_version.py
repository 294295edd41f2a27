"""Redis version: all three forms of deployment use one supported series, so that each can read the others' files."""

import re
import subprocess

import yaml

from rapid.embedded_redis import server_binary
from tests.charts.rendering import CHART, ROOT, Values, find

# Upstream supports 7.4 and newer, and Valkey 8.
OLDEST = (7, 4)


def series(text: str) -> tuple[int, int]:
    found = re.search(r"(\d+)\.(\d+)", text)
    assert found, text
    return int(found[1]), int(found[2])


def test_chart_compose_and_the_embedded_server_are_of_one_series() -> None:
    tag = yaml.safe_load((CHART / "values.yaml").read_text())["redis"]["image"]["tag"]
    said = subprocess.run([server_binary(), "--version"], capture_output=True, text=True, check=True).stdout
    embedded = series(re.findall(r"v=(\S+)", said)[0])
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    images = {compose[name]["image"] for name in ("redis-state", "redis-params", "redis-volume")}
    assert images == {f"${{FIVE_REDIS_IMAGE:-redis:{tag}}}"}
    assert embedded == series(tag) >= OLDEST
    assert f"redis:{tag}" in (ROOT / ".ci/container-host.sh").read_text()


def test_the_configuration_is_in_a_folder_of_our_own() -> None:
    """Images whose /etc/redis is readable by root only must start too."""
    for kind, role in (("StatefulSet", "state"), ("Deployment", "params")):
        (container,) = find(Values("defaults"), kind, f"redis-{role}")["spec"]["template"]["spec"]["containers"]
        mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
        assert container["command"] == ["sh", "/etc/five-redis/conf/start.sh"]
        assert "subPath" not in mounts["/etc/five-redis/conf"]
        assert not any(path.startswith("/etc/redis") for path in mounts)


def test_a_digest_is_used_in_place_of_the_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    values = Values("digest", sets=(f"redis.image.digest={digest}", f"rollout.image.digest={digest}"))
    for kind, name, image in (("StatefulSet", "redis-state", "redis"), ("Deployment", "redis-params", "redis"),
                              ("Deployment", "rollout", "five/rollout")):
        spec = find(values, kind, name)["spec"]["template"]["spec"]
        assert spec["containers"][0]["image"] == f"{image}@{digest}"
