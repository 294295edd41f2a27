"""The services can read the configuration that the chart writes, and it matches the chart's objects."""

from pathlib import Path

import pytest
import yaml

from five.capacity.cluster_sizes import version_seconds
from five.run.config import RunConfig
from five.run.load import load
from five.services.optimizer.agent import parse
from rapid.config import StoreConfig
from rapid.store.idempotency import MAX_KEYS
from tests.charts.rendering import CHART, NAMESPACE, RELEASE, Object, Values, find, objects, pods, run_config
from tests.charts.test_network import services_of

DEFAULTS = Values("defaults")
# Memory in the state Redis by MEMORY USAGE: 284 versions, 2,268 games and their idempotency keys of laptop-5v5 took
# 3,144, 847 and 124 bytes each.
VERSION_BYTES, GAME_BYTES, KEY_BYTES = 3200, 900, 130


def loaded(values: Values, folder: Path) -> RunConfig:
    """Load the configuration with the code that the services use."""
    path = folder / "run.yaml"
    path.write_text(run_config(values))
    return load(path)


def test_every_rendered_configuration_loads(values: Values, tmp_path: Path) -> None:
    config = loaded(values, tmp_path)
    assert config.name == RELEASE
    assert config.rpc.listen_host == config.telemetry.metrics_host == config.services.controller.host == "::"
    assert config.rpc.require_token and config.services.controller.auth
    # Sidecars are on the pod's own loop; every other address is a Service of the release at a port of it.
    ports = {s["metadata"]["name"]: {p["port"] for p in s["spec"]["ports"]} for s in objects(values, "Service")}
    for address in services_of(config):
        host, _, port = address.rpartition(":")
        if host != "127.0.0.1":
            service = host.removesuffix(f".{NAMESPACE}.svc").rpartition(".")[2]
            assert service in ports, address
            assert int(port) in ports[service] or service == "five-optimizer", address
    for url in (config.store.state_url, config.store.params_url):
        assert "@" not in url, "passwords come from the environment"


@pytest.mark.parametrize("name", ["2024", "1e5", "true", "null"])
def test_text_that_looks_like_another_type_stays_text(name: str, tmp_path: Path) -> None:
    """Also after --set, which reads a patch as a number."""
    (tmp_path / "values.yaml").write_text(
        f'run: {{name: "{name}", overrides: {{services: {{optimizer: {{recover_checkpoint: "000000000120"}}}}}}}}\n')
    values = Values(f"named-{name}", (str(tmp_path / "values.yaml"),), ("run.overrides.game.patch=7.19",))
    config = loaded(values, tmp_path)
    assert (config.name, config.game.patch) == (name, "7.19")
    assert config.services.optimizer.recover_checkpoint == "000000000120"


def test_recordings_of_two_runs_are_in_two_folders(tmp_path: Path) -> None:
    config = loaded(Values("named", sets=("run.name=second",)), tmp_path)
    assert config.services.evaluator.replays == "/var/lib/five/blobs/replays/second"


def test_optimizers_are_one_for_each_address_and_pod(values: Values, tmp_path: Path) -> None:
    settings = loaded(values, tmp_path).services.optimizer
    spec = find(values, "StatefulSet", "optimizer")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert settings.optimizers == spec["replicas"] * settings.ranks_per_node
    addresses = {settings.address(rank) for rank in range(settings.optimizers)}
    assert len(addresses) == settings.optimizers
    listening = {p["containerPort"] for p in container["ports"]}
    assert {int(d.rpartition(":")[2]) for d in addresses} <= listening
    pods = {f"five-optimizer-{i}" for i in range(spec["replicas"])}
    assert {d.partition(".")[0] for d in addresses} == pods
    arguments = container["args"]
    if settings.optimizers > 1:
        assert f"--nodes={spec['replicas']}" in arguments
        assert f"--ranks={settings.ranks_per_node}" in arguments
        assert "five.services.optimizer.agent" in container["command"]
        assert parse(arguments).service[0] == "--config=/etc/five/run.yaml"
    else:
        assert "command" not in container and not any("nodes" in a for a in arguments)


def test_devices_follow_gpus(values: Values, tmp_path: Path) -> None:
    config = loaded(values, tmp_path)
    optimizer = find(values, "StatefulSet", "optimizer")["spec"]["template"]["spec"]["containers"][0]
    assert (config.services.optimizer.device == "cuda") is ("nvidia.com/gpu" in optimizer["resources"]["limits"])
    inference = find(values, "Deployment", "inference")["spec"]["template"]["spec"]["containers"][0]
    assert (config.services.inference.device == "cuda") is ("nvidia.com/gpu" in inference["resources"]["limits"])


def test_overrides_reach_the_configuration(tmp_path: Path) -> None:
    values = Values("overrides", sets=("run.name=first", "run.preset=laptop-5v5", "run.overrides.seed=11",
                                       "run.overrides.learning.batch_samples=16"))
    config = loaded(values, tmp_path)
    assert (config.name, config.seed, config.learning.batch_samples) == ("first", 11, 16)
    assert config.game.heroes_per_team == 5, "the preset's"


def test_pods_end_after_their_service_has_drained(values: Values, tmp_path: Path) -> None:
    grace = loaded(values, tmp_path).lifecycle.grace_seconds
    for name, _, spec in pods(objects(values)):
        if name.startswith(("Deployment/", "StatefulSet/")) and "redis" not in name:
            assert spec["terminationGracePeriodSeconds"] > grace, name


def test_an_optimizer_has_the_time_that_its_checkpoint_takes() -> None:
    def grace(*sets: str) -> int:
        found = {name: spec for name, _, spec in pods(objects(Values(" ".join(sets), sets=sets)))}
        return int(found["StatefulSet/five-optimizer"]["terminationGracePeriodSeconds"])

    assert grace() == 60  # the value holds where it is more
    paper = grace("run.preset=rerun", "redis.params.maxmemory=8gb")
    assert paper == 151  # 20 s, and 2.5 x 2,506 MB at 50 MB/s, and 5 to spare
    assert grace("run.preset=rerun", "redis.params.maxmemory=8gb", "blobs.megabytesPerSecond=500") == 60
    assert grace("run.preset=rerun", "redis.params.maxmemory=8gb", "blobs.megabytesPerSecond=10") == 652


def test_files_are_where_the_configuration_says(values: Values, tmp_path: Path) -> None:
    """Configured certificates are mounted in every container that reads the configuration. Test pods are exempt: each
    dials one kind of endpoint."""
    config = loaded(values, tmp_path)
    stores = [config.store.tls_authority] if config.store.tls_authority else []
    tls = config.rpc.tls
    calls = [tls.authority, tls.certificate, tls.key] if tls else []
    of_tests = {"Pod/five-test-redis": stores, "Pod/five-test-grpc": calls}
    for name, _, spec in pods(objects(values)):
        volumes = {v["name"]: v for v in spec.get("volumes", [])}
        for c in spec["containers"]:
            mounts = {m["mountPath"]: m["name"] for m in c["volumeMounts"]}
            if "/etc/five/run.yaml" not in mounts:
                continue
            # Games have no store.
            needed = calls if c["name"].startswith("dota-env") else [*stores, *calls]
            for path in of_tests.get(name, needed):
                where, _, key = path.rpartition("/")
                assert where in mounts, (name, c["name"], path)
                items = volumes[mounts[where]]["secret"].get("items")
                assert items is None or key in [i["path"] for i in items]


def test_large_numbers_are_written_in_full(tmp_path: Path) -> None:
    """helm prints a number of a values file as 1e+06, which neither Redis nor the optimizers' agent reads."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({
        "optimizer": {"replicas": 2, "maxRestarts": 1_000_000}, "blobs": {"size": 20 << 30},
        "redis": {"state": {"maxclients": 1_000_000, "resources": {"limits": {"memory": 1 << 30}}}}}))
    values = Values("large numbers", (str(file),))
    (container,) = find(values, "StatefulSet", "optimizer")["spec"]["template"]["spec"]["containers"]
    assert parse(container["args"]).max_restarts == 1_000_000
    assert "\nmaxclients 1000000\n" in find(values, "ConfigMap", "redis-state")["data"]["redis.conf"]
    in_text = loaded(Values("20Gi", sets=("blobs.size=20Gi",)), tmp_path)
    assert loaded(values, tmp_path).store.max_archived == in_text.store.max_archived


def memory_of(o: Object) -> int:
    """Return maxmemory of redis.conf in bytes."""
    line = next(li for li in o["data"]["redis.conf"].splitlines() if li.startswith("maxmemory "))
    number = line.split()[1].lower()
    return int(number[:-2]) << {"kb": 10, "mb": 20, "gb": 30}[number[-2:]]


def test_series_of_the_run_fit_into_the_state_redis(values: Values, tmp_path: Path) -> None:
    records = loaded(values, tmp_path).store.series_records
    if not any(o["metadata"]["name"] == "five-redis-state" for o in objects(values, "ConfigMap")):
        assert records == StoreConfig().series_records
        return
    keys = 3 * MAX_KEYS * KEY_BYTES  # of games, versions and results
    assert records * (VERSION_BYTES + GAME_BYTES) + keys < 0.9 * memory_of(find(values, "ConfigMap", "redis-state"))


def test_archived_versions_fit_into_half_of_the_claim(values: Values, tmp_path: Path) -> None:
    most = loaded(values, tmp_path).store.max_archived
    claims = [o for o in objects(values, "PersistentVolumeClaim") if o["metadata"]["name"] == "five-blobs"]
    if not claims:
        assert most == StoreConfig().max_archived
        return
    storage = claims[0]["spec"]["resources"]["requests"]["storage"]
    size = int(storage[:-2]) << {"Gi": 30, "Ti": 40}[storage[-2:]]
    facts = yaml.safe_load((CHART / "files/presets.yaml").read_text())
    version = facts[yaml.safe_load(run_config(values))["preset"]]["parameter_bytes"]
    version /= 2 if loaded(values, tmp_path).store.publish_dtype == "bfloat16" else 1
    assert most in (size // (2 * version), StoreConfig().max_archived) and most * version <= size / 2


@pytest.mark.parametrize(("sets", "most"), [
    (("run.preset=gpu-node",), 206), (("run.preset=gpu-node", "blobs.size=1500G"), 10_000),
    (("run.preset=rerun", "redis.params.maxmemory=8gb"), 34), (("run.preset=laptop-1v1", "blobs.size=512Mi"), 219),
    (("run.preset=rerun", "redis.params.maxmemory=8gb", "blobs.size=1Gi"), 2),
    (("run.preset=gpu-node", "run.overrides.store.publish_dtype=bfloat16"), 412),
    (("run.preset=gpu-node", "run.overrides.model.lstm=64", "redis.params.maxmemory=1gb"), 10_000),
    (("run.overrides.store.max_archived=0",), 0)])
def test_claim_bounds_the_archive(sets: tuple[str, ...], most: int, tmp_path: Path) -> None:
    assert loaded(Values(" ".join(sets), sets=sets), tmp_path).store.max_archived == most


def test_params_redis_fits_kept_and_pending_versions(values: Values, tmp_path: Path) -> None:
    if not any(o["metadata"]["name"] == "five-redis-params" for o in objects(values, "ConfigMap")):
        pytest.skip("it is outside the release")
    config = loaded(values, tmp_path)
    facts = yaml.safe_load((CHART / "files/presets.yaml").read_text())
    preset = yaml.safe_load(run_config(values))["preset"]
    memory = memory_of(find(values, "ConfigMap", "redis-params"))
    grace = config.store.grace_seconds / version_seconds(load(preset))
    assert memory >= (config.store.keep_versions + grace + 1) * facts[preset]["parameter_bytes"]
    container, *_ = find(values, "Deployment", "redis-params")["spec"]["template"]["spec"]["containers"]
    limit = container["resources"]["limits"]["memory"]
    assert int(limit.removesuffix("Mi")) << 20 > memory


@pytest.mark.parametrize(("store", "versions"), [({}, 17), ({"grace_seconds": 120}, 29), ({"grace_seconds": 1}, 8),
                                                 ({"grace_seconds": "150.5", "keep_versions": 2}, 34)])
def test_params_redis_follows_the_grace_time(store: Object, versions: int, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"run": {"preset": "gpu-node", "overrides": {"store": store}}}))
    memory = memory_of(find(Values(f"store-{store}", (str(file),)), "ConfigMap", "redis-params"))
    assert memory >> 20 == 50 * versions + 64 + 64  # 50 MiB each; chunks of eight readers; the rest
