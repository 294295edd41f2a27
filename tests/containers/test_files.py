"""Dockerfile and compose files, checked without an engine."""

import importlib.util
import json
import os
import re
import stat
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from five.run.load import load
from five.services.controller.http import tokens
from five.services.optimizer import agent
from rapid.rpc.access import Audience, Caller
from rapid.rpc.callers import callers_text
from rapid.store import acl
from tests.containers.engine import IMAGES, OPTIONAL, ROOT, SERVICES, STORES
from tools import redis_users

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SMOKE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose/smoke.yml").read_text())
GPU: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.gpu.yml").read_text())


def script(name: str) -> ModuleType:
    """Load a module of deploy/images, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"deploy/images/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_service_has_an_image_and_a_container() -> None:
    modules = {path.parent.name for path in (ROOT / "services").glob("*/__main__.py")}
    assert {name.replace("-", "_") for name in IMAGES} == modules
    for name in IMAGES:
        stage = DOCKERFILE.partition(f" AS {name}\n")[2].partition("\nFROM ")[0]
        assert f'"five.services.{name.replace("-", "_")}"]' in stage, name
        assert COMPOSE["services"][name]["build"]["target"] == name
        assert COMPOSE["services"][name].get("profiles") == ([name] if name in OPTIONAL else None)
    for name in SERVICES:
        assert SMOKE["services"][name]["command"][:2] == ["--config", "/etc/five/run.yaml"]


def test_dockerfile_has_no_frontend_or_compiler() -> None:
    assert "# syntax=" not in DOCKERFILE
    assert "<<" not in DOCKERFILE
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)
    below = {name: parent for parent, name in stages}
    assert below["compiler"] == below["runtime"] == "${BASE}"
    for name in IMAGES:
        chain = [name]
        while chain[-1] in below:
            chain.append(below[chain[-1]])
        assert "runtime" in chain and "compiler" not in chain
        assert ("agent" in chain) == (name in ("inference", "optimizer"))


def test_the_build_context_has_only_files_of_the_images() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    assert {"**/*.so", "**/*_pb2.py", "**/__pycache__"} <= set(lines)
    assert not {"!tests", "!.git", "!.env"} & set(lines)


def test_mounted_files_have_an_selinux_label() -> None:
    tls = yaml.safe_load((ROOT / "deploy/compose/tls.yml").read_text())
    # Compose mounts `configs` without a label.
    assert not [file for file in (COMPOSE, tls, GPU, SMOKE) if "configs" in file]
    mounts = [mount for file in (COMPOSE, tls, GPU) for service in file["services"].values()
              for mount in service.get("volumes", [])]
    bound = [mount for mount in mounts if isinstance(mount, dict) or mount.startswith(("./", "/"))]
    assert len(bound) > 30
    for mount in bound:
        label = mount["bind"].get("selinux") if isinstance(mount, dict) else mount.rpartition(":")[2].rpartition(",")[2]
        assert label == "z", mount


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_a_container_is_locked_down_and_bounded(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"]
    assert "container_name" not in service and "privileged" not in service
    if name not in ("redis-volume", "admin"):
        assert service["mem_limit"]
        assert service["healthcheck"]["test"]
        assert str(service["user"]).split(":")[0] != "0"


def test_only_endpoints_have_ports_and_only_on_this_machine() -> None:
    with_ports = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    variables = {name: re.findall(r"^\$\{(\w+):-127\.0\.0\.1\}:", port)
                 for name, (port,) in with_ports.items()}
    # Prometheus and dotaservice have no login: what opens the console and Grafana leaves them on this machine.
    assert variables == {"controller": ["FIVE_LISTEN"], "grafana": ["FIVE_LISTEN"],
                         "prometheus": ["FIVE_PROMETHEUS_LISTEN"], "dotaservice": ["FIVE_DOTASERVICE_LISTEN"]}


def test_secrets_come_from_make_env_alone() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert "FIVE_SECRETS:?is not set; `make env` writes" in text
    # A value in a container's environment is shown by `docker inspect`.
    assert not re.findall(r"\$\{\w*(?:TOKEN|PASSWORD)\w*", text)


def password_mounts(service: str) -> dict[str, str]:
    """Return the password folders that a container mounts, by mount point."""
    return {v["target"]: v["source"].rpartition("/private/")[2] for v in COMPOSE["services"][service].get("volumes", [])
            if isinstance(v, dict) and re.search("private/(redis|grafana)", v["source"]) and v["read_only"] is True}


def test_a_container_holds_its_own_secrets_alone() -> None:
    for service in IMAGES:
        user = service.replace("-", "_")
        assert password_mounts(service) == ({"/etc/five/redis": f"redis/{user}"} if acl.roles_of(user) else {})
        given = COMPOSE["services"][service].get("environment", {})
        calls, serves = user in list(Caller), user in list(Audience)
        assert given.get("FIVE_CALLER_SECRET_FILE") == ("/etc/five/caller/secret" if calls else None)
        assert given.get("FIVE_CALLERS_FILE") == ("/etc/five/callers/callers.json" if serves else None)
        folders = {v["target"]: v["source"].partition("}/")[2] for v in COMPOSE["services"][service]["volumes"]
                   if isinstance(v, dict) and "callers" in v["source"] and v["read_only"] is True}
        assert folders == ({"/etc/five/caller": f"private/callers/{user}"} if calls else {}) | (
            {"/etc/five/callers": "callers"} if serves else {})
        for role in acl.ROLES:
            has = role in acl.roles_of(user)
            assert given.get(f"FIVE_{role.upper()}_USER") == (user if has else None)
            assert given.get(f"FIVE_{role.upper()}_PASSWORD_FILE") == ("/etc/five/redis/password" if has else None)
    assert all(password_mounts(store) == {"/etc/redis-probe": "redis/probe"} for store in STORES)
    assert password_mounts("admin") == {"/etc/five/redis": "redis/admin"}
    assert COMPOSE["services"]["admin"]["profiles"] == ["admin"]
    assert password_mounts("grafana") == {"/etc/five/grafana": "grafana"}
    grafana = COMPOSE["services"]["grafana"]["environment"]
    assert grafana["GF_SECURITY_ADMIN_PASSWORD__FILE"] == "/etc/five/grafana/password"  # noqa: S105
    assert not [name for name in ("redis-volume", "prometheus") if "private" in str(COMPOSE["services"][name])]
    tokens = [name for name, service in COMPOSE["services"].items() if "/controller\"" in str(service)
              or any(isinstance(v, dict) and v["source"].endswith("/controller") for v in service.get("volumes", []))]
    assert tokens == ["controller"]


def test_the_users_of_redis_are_those_of_the_source() -> None:
    for role in acl.ROLES:
        assert redis_users.path_of(role).read_text() == acl.template(role), "run `python -m tools.redis_users`"


def test_containers_start_in_order_of_health() -> None:
    waits = {name: service.get("depends_on", {}) for name, service in COMPOSE["services"].items()}
    assert all(on["condition"] in ("service_healthy", "service_completed_successfully")
               for needs in waits.values() for on in needs.values())
    assert set(waits["controller"]) == set(STORES)
    assert set(waits["rollout"]) == {"dota-env", "inference", "opponents", "optimizer"}


@pytest.mark.parametrize(("name", "preset"), [("run.yaml", "laptop-1v1"), ("run-gpu.yaml", "gpu-node")])
def test_the_runs_are_valid_and_name_the_containers(name: str, preset: str) -> None:
    path = ROOT / "deploy/compose" / name
    assert yaml.safe_load(path.read_text())["preset"] == preset
    config = load(path)
    services = config.services
    addresses = [*services.dota_env.addresses, *services.inference.addresses, *services.optimizer.addresses,
                 services.opponents.address, services.evaluator.address, services.play.address,
                 *(url.removeprefix("redis://").removesuffix("/0") for url in
                   (config.store.state_url, config.store.params_url))]
    hosts = {address.rpartition(":")[0] for address in addresses}
    assert hosts <= COMPOSE["services"].keys()
    assert config.rpc.listen_host == config.telemetry.metrics_host == services.controller.host == "::"
    assert services.dotaservice.host == "::" and services.dotaservice.port == 13337
    assert config.rpc.require_token and services.controller.auth and services.controller.keep_serving
    assert config.telemetry.metrics_port == 9100
    assert services.rollout.environment == "remote"


def test_the_two_runs_differ_in_their_preset_alone() -> None:
    one, other = (yaml.safe_load((ROOT / "deploy/compose" / name).read_text()) for name in ("run.yaml", "run-gpu.yaml"))
    assert {**one, "preset": ""} == {**other, "preset": ""}


def test_the_smoke_run_is_valid_and_the_same_for_every_service() -> None:
    commands = [SMOKE["services"][name]["command"] for name in SERVICES]
    assert all(command == commands[0] for command in commands)
    sets = [value for flag, value in zip(commands[0], commands[0][1:], strict=False) if flag == "--set"]
    config = load(ROOT / "deploy/compose/run.yaml", sets)
    assert config.learning.batch_samples == 8
    # The command of each compose service begins that of the smoke run.
    assert commands[0][:4] == COMPOSE["services"]["rollout"]["command"]


def test_group_runs_an_agent_for_each_optimizer() -> None:
    group = yaml.safe_load((ROOT / "deploy/compose/group.yml").read_text())["services"]["optimizer"]
    assert group["entrypoint"][:4] == ["tini", "--", "python", "-m"]
    assert group["scale"] == "${FIVE_OPTIMIZERS:-2}" == group["entrypoint"][6]
    module, nodes, *rest = group["entrypoint"][4:]
    assert module == agent.__name__ and nodes == "--nodes"
    command = COMPOSE["services"]["optimizer"]["command"]
    given = agent.parse([nodes, "2", *rest[1:], *command])
    assert (given.minimum, given.maximum, given.ranks) == (2, 2, 1)
    assert given.service == command


def test_graphics_cards_go_to_inference_and_optimizer() -> None:
    assert GPU["services"].keys() == {*IMAGES, "admin", "redis-params"}
    for name in ("inference", "optimizer"):
        service = GPU["services"][name]
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
        assert service["image"] == COMPOSE["services"][name]["image"] + "-cuda"
        assert service["build"]["args"] == {"FLAVOUR": "cuda", "TORCH_INDEX": "${FIVE_TORCH_INDEX-}"}


def test_the_parameters_fit_into_their_redis() -> None:
    presets = yaml.safe_load((ROOT / "charts/files/presets.yaml").read_text())
    for file, preset in ((COMPOSE, "laptop-1v1"), (GPU, "gpu-node")):
        facts = presets[preset]
        stored = facts["keep_versions"] + facts["versions_in_grace"] + 1  # and the one being written
        (gibibytes,) = re.findall(r":-(\d+)g\}$", file["services"]["redis-params"]["mem_limit"])
        # As in the chart, a quarter more for what the allocator cannot use.
        assert 1.25 * stored * facts["parameter_bytes"] < int(gibibytes) << 30, preset


def test_prometheus_looks_for_every_service() -> None:
    config = yaml.safe_load((ROOT / "deploy/compose/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    (names,) = job["dns_sd_configs"]
    assert set(names["names"]) == set(IMAGES)
    assert names["port"] == 9100


def test_only_writers_of_blobs_may_write_them() -> None:
    """The controller removes what a cancelled operation staged; the admin writes backups."""
    mounts = {name: volume.rpartition(":")[2] for name, service in COMPOSE["services"].items()
              for volume in service.get("volumes", []) if isinstance(volume, str) and volume.startswith("blobs:")}
    assert mounts == {"inference": "ro", **dict.fromkeys(("optimizer", "evaluator", "controller", "admin"),
                                                         "/var/lib/five/blobs")}
    # Docker creates a new volume with the owner of the folder in the image of its first container.
    assert "install -d -o 10001 -g 10001 /var/lib/five /var/lib/five/blobs" in DOCKERFILE


def test_everything_that_compose_mounts_is_there() -> None:
    for file, run in ((COMPOSE, "run.yaml"), (GPU, "run-gpu.yaml")):
        for name in (*IMAGES, "admin"):
            sources = [v["source"] for v in file["services"][name]["volumes"]
                       if isinstance(v, dict) and v["target"] == "/etc/five/run.yaml"]
            assert sources == [f"${{FIVE_RUN:-./deploy/compose/{run}}}"] and (ROOT / "deploy/compose" / run).is_file()
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            if isinstance(volume, dict):  # made by `make env`, and not by the engine where it is missing
                assert volume["read_only"] and volume["bind"] == {"create_host_path": False, "selinux": "z"}
            elif volume.startswith("./"):
                assert (ROOT / volume.partition(":")[0]).exists(), volume


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    folder = ROOT / "deploy/compose/grafana"
    (source,) = yaml.safe_load((folder / "datasources.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090" and source["isDefault"]
    (provider,) = yaml.safe_load((folder / "dashboards.yaml").read_text())["providers"]
    mounts = dict(v.split(":")[:2][::-1] for v in COMPOSE["services"]["grafana"]["volumes"] if isinstance(v, str))
    assert mounts[provider["options"]["path"]] == "./charts/dashboards"
    home = COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / "charts/dashboards" / Path(home).name).is_file()


def test_secrets_are_new_private_and_kept(tmp_path: Path) -> None:
    def make(name: str) -> dict[str, str]:
        subprocess.run([ROOT / "deploy/compose/make-env.sh", tmp_path / name], check=True, capture_output=True)
        found = dict(line.split("=") for line in (tmp_path / name).read_text().splitlines())
        assert found.pop("FIVE_SECRETS") == str(tmp_path / f"{name}.d")
        return found

    first = make("one")
    assert len(set(first.values())) == len(first) == 16
    assert all(len(value) == 48 for value in first.values())
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    assert make("one") == first
    assert not set(make("two").values()) & set(first.values())
    # Values of a file written by hand stay. An empty secret is replaced.
    (tmp_path / "mine").write_text("GRAFANA_PASSWORD=\nFIVE_PLAY_SECRET=mine")
    (tmp_path / "mine").chmod(0o644)
    mine = make("mine")
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600
    assert mine["FIVE_PLAY_SECRET"] == "mine" and len(mine["GRAFANA_PASSWORD"]) == 48  # noqa: S105


def made(place: Path, **environment: str) -> tuple[dict[str, str], Path]:
    """Run make-env.sh; return the secrets and the folder that containers mount."""
    subprocess.run([ROOT / "deploy/compose/make-env.sh", place], check=True, capture_output=True,
                   env={"PATH": os.environ["PATH"], **environment})
    found = dict(line.split("=") for line in place.read_text().splitlines())
    return found, Path(found["FIVE_SECRETS"])


def test_mounted_files_hold_hashes_and_own_secrets(tmp_path: Path) -> None:
    secrets, folder = made(tmp_path / "env")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"users.acl", "tokens.json", "callers.json", "secret", "password"}
    for path in files:
        if path.name == "password":
            user = path.parent.name
            assert path.read_text().strip() == secrets["GRAFANA_PASSWORD" if user == "grafana" else
                                                       f"FIVE_{user.upper()}_PASSWORD"]
            assert folder / "private" in path.parents and stat.S_IMODE(path.stat().st_mode) == 0o644
            continue
        if path.name == "secret":
            assert path.read_text() == secrets[f"FIVE_{path.parent.name.upper()}_SECRET"] + "\n"
            assert path.parent.parent == folder / "private" / "callers"
            assert stat.S_IMODE((folder / "private").stat().st_mode) == 0o700
            assert stat.S_IMODE(path.stat().st_mode) == 0o644
            continue
        assert not [name for name, value in secrets.items() if value in path.read_text()]
        assert stat.S_IMODE(path.stat().st_mode) == 0o644  # read by user 10001
    assert (folder / "callers" / "callers.json").read_text() == callers_text(
        {caller: [secrets[f"FIVE_{caller.upper()}_SECRET"]] for caller in Caller if caller is not Caller.CLI})
    for role in acl.ROLES:
        passwords = {user: [secrets[f"FIVE_{user.upper()}_PASSWORD"]] for user in acl.users(role)}
        written = (folder / f"redis-{role}" / "users.acl").read_text()
        assert written == acl.acl_file(role, passwords, "five")
    entries = {entry.name: entry for entry in tokens.read(folder / "controller" / "tokens.json")}
    assert entries["operator"].role == "operator" and entries["viewer"].role == "viewer"
    assert entries["operator"].sha256 == tokens.token_hash(secrets["FIVE_OPERATOR_TOKEN"])
    # While a password is changed both are taken; tokens that were made since stay; another run has other keys.
    (tmp_path / "env").open("a").write("FIVE_ROLLOUT_PASSWORD_OLD=old\n")
    (folder / "controller" / "tokens.json").write_text("[]")
    (tmp_path / "run.yaml").write_text("preset: laptop-1v1\nname: another.one   # mine\n")
    made(tmp_path / "env", FIVE_RUN=str(tmp_path / "run.yaml"))
    text = (folder / "redis-state" / "users.acl").read_text()
    assert f"user rollout on {acl.hash_password(secrets['FIVE_ROLLOUT_PASSWORD'])} {acl.hash_password('old')} " in text
    assert "~five:another.one:" in text and "five:five:" not in text
    assert (folder / "controller" / "tokens.json").read_text() == "[]"
    (tmp_path / "run.yaml").write_text("preset: laptop-1v1\n")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        made(tmp_path / "env", FIVE_RUN=str(tmp_path / "run.yaml"))
    assert b"has no line 'name: ...'" in refused.value.stderr


def test_requirements_of_an_image_are_the_projects() -> None:
    found = script("requirements").requirements((ROOT / "pyproject.toml").read_text())
    assert any(line.startswith("numpy") for line in found["platform"])
    assert any(line.startswith("grpcio") for line in found["platform"])
    assert any(line.startswith("fastapi") for line in found["control"])
    assert not [line for lines in found.values() for line in lines if line.startswith("torch")]
    with pytest.raises(KeyError):
        script("requirements").requirements("[project]\ndependencies = []\noptional-dependencies = {}\n")


def test_sizes_are_reported_by_layer_above_the_base() -> None:
    sizes = script("sizes")
    below = [sizes.Layer(80_000_000, "base files")]
    own = [sizes.Layer(0, "USER 10001"), sizes.Layer(2_500_000, "pip install"), *below]
    assert sizes.table("five/x:1", own, "python:3.11", below) == [
        "five/x:1: 82.5 MB, 2.5 MB above its base", "     2.5 MB  pip install", "    80.0 MB  python:3.11"]


@pytest.mark.parametrize("tool", ["sha256sum", "shasum", ""])
def test_secrets_need_a_program_for_hashes(tmp_path: Path, tool: str) -> None:
    """macOS has shasum. Without either nothing is written."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for path in Path(folder).iterdir():
            if path.name not in ("sha256sum", "shasum") and not (tools / path.name).exists():
                (tools / path.name).symlink_to(path)
    if tool:
        # `shasum -a 256` prints what sha256sum does.
        (tools / tool).write_text("#!/bin/sh\nexec /usr/bin/sha256sum\n")
        (tools / tool).chmod(0o755)
    done = subprocess.run([ROOT / "deploy/compose/make-env.sh", tmp_path / "env"], capture_output=True, text=True,
                          check=False, env={"PATH": str(tools)})
    if tool:
        assert done.returncode == 0, done.stderr
        entries = json.loads((tmp_path / "env.d/controller/tokens.json").read_text())
        assert all(re.fullmatch("[0-9a-f]{64}", entry["sha256"]) for entry in entries)
    else:
        assert done.returncode == 2 and "sha256sum or shasum is needed" in done.stderr
        assert not (tmp_path / "env").exists()
