"""Tokens and passwords are generated once and kept, or given; they appear only in Secrets; a pod gets only those it
uses."""

import base64
import json
import re
import subprocess
from collections import defaultdict
from hashlib import sha256

import pytest
import yaml

from five.services.controller.http import tokens
from rapid.rpc.access import Caller
from rapid.rpc.callers import callers_text
from rapid.store import acl
from tests.charts import rendering
from tests.charts.rendering import (
    CHART,
    NAMESPACE,
    ROOT,
    Values,
    containers,
    find,
    objects,
    pods,
    refusal,
    text,
)

DEFAULTS = Values("defaults")
GIVEN = Values("given", files=(str(CHART / "ci/existing-secrets-values.yaml"),))
THERE = Values("there already", sets=("secrets.create=false",))
USERS = (*acl.SERVICES, acl.PROBE, acl.ADMIN)
CALLERS = [caller for caller in Caller if caller is not Caller.CLI]  # the command is of a laptop's runs
MADE = {"callers", *(f"caller-{caller}" for caller in CALLERS), "api-tokens", "operator-token", "test-token",
        "redis-users", *(f"redis-{u}" for u in USERS)}


def held(values: Values) -> dict[str, set[tuple[str, str]]]:
    """Return {container: (Secret, key) pairs} that containers get by environment or volume."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, _, spec in pods(objects(values)):
        volumes = {v["name"]: v["secret"] for v in spec.get("volumes", []) if "secret" in v}
        for c in containers(spec):
            where = f"{name.partition('/')[2].removeprefix('five-')}:{c['name']}"
            for variable in c.get("env", []):
                ref = variable.get("valueFrom", {}).get("secretKeyRef")
                if ref:
                    found[where].add((ref["name"].removeprefix("five-"), ref["key"]))
            for mount in c.get("volumeMounts", []):
                secret = volumes.get(mount["name"])
                for item in (secret or {}).get("items") or ([{"key": "*"}] if secret else []):
                    assert "subPath" not in mount, "a file that is mounted by itself never changes"
                    found[where].add((volumes[mount["name"]]["secretName"].removeprefix("five-"), item["key"]))
    return found


def test_no_pod_holds_a_secret_that_it_does_not_use() -> None:
    serves = {("callers", "callers.json")}

    def calls(caller: str) -> set[tuple[str, str]]:
        return {(f"caller-{caller}", "secret")}

    def own(user: str) -> set[tuple[str, str]]:
        return {(f"redis-{user}", f"{role}-password") for role in acl.roles_of(user)}

    assert held(DEFAULTS) == {
        "rollout:rollout": calls("rollout") | own("rollout"), "rollout:dota-env-0": serves,
        "inference:inference": serves | own("inference"), "optimizer:optimizer": serves | own("optimizer"),
        "opponents:opponents": serves | own("opponents"),
        "evaluator:evaluator": serves | calls("evaluator") | own("evaluator"),
        "controller:controller": calls("controller") | own("controller") | {("api-tokens", "tokens.json")},
        "redis-state:redis": {("redis-probe", "state-password"), ("redis-users", "state.acl")},
        "redis-params:redis": {("redis-probe", "params-password"), ("redis-users", "params.acl")},
        "test-redis:test": {("redis-probe", "state-password"), ("redis-probe", "params-password")},
        "test-rest:test": {("test-token", "token")}, "test-training:test": {("test-token", "token")}}


def test_no_pod_gets_admin_password_or_operator_token(values: Values) -> None:
    given = {secret for secrets in held(values).values() for secret, _ in secrets}
    assert not [name for name in given if name.endswith(("redis-admin", "operator-token", "our-admin"))]
    for where, secrets in held(values).items():
        names = {name for name, _ in secrets}
        if "dota-env" in where or ":games" in where:
            assert not [name for name in names if "redis" in name and "tls" not in name], where
        assert any("api-tokens" in n or n == "our-people" for n in names) == (where == "controller:controller")


def test_values_are_long_random_and_different() -> None:
    drawn = [base64.b64decode(v).decode() for s in objects(DEFAULTS, "Secret") for k, v in s["data"].items()
             if not k.endswith((".acl", ".json"))]
    passwords = sum(len(acl.roles_of(user)) for user in acl.SERVICES) + 4  # and of probe and admin
    assert len(drawn) == len(set(drawn)) == passwords + 3 + len(CALLERS)
    assert all(re.fullmatch(r"[A-Za-z0-9]{48}", v) for v in drawn)
    assert {s["metadata"]["name"].removeprefix("five-") for s in objects(DEFAULTS, "Secret")} == MADE


def data(values: Values, name: str) -> dict[str, str]:
    return {k: base64.b64decode(v).decode() for k, v in find(values, "Secret", name)["data"].items()}


def test_redis_knows_the_passwords_and_everybodys_rights() -> None:
    named = Values("a run with a name", sets=("run.name=rerun-2",))
    for values, run in ((DEFAULTS, "five"), (named, "rerun-2")):
        files = data(values, "redis-users")
        for role in acl.ROLES:
            passwords = {user: [data(values, f"redis-{user}")[f"{role}-password"]] for user in acl.users(role)}
            assert files[f"{role}.acl"] == acl.acl_file(role, passwords, run)


def test_servers_know_the_hashes_of_their_callers() -> None:
    secrets = {caller: [data(DEFAULTS, f"caller-{caller}")["secret"]] for caller in CALLERS}
    assert data(DEFAULTS, "callers")["callers.json"] == callers_text(secrets)


def test_the_controller_knows_the_hashes_of_the_tokens() -> None:
    entries = {e["name"]: e for e in json.loads(data(DEFAULTS, "api-tokens")["tokens.json"])}
    people = data(DEFAULTS, "operator-token")
    drawn = {"operator": people["operator-token"], "viewer": people["viewer-token"],
             "helm-test": data(DEFAULTS, "test-token")["token"]}
    assert {name: e["sha256"] for name, e in entries.items()} == {
        name: sha256(token.encode()).hexdigest() for name, token in drawn.items()}
    assert {name: e["role"] for name, e in entries.items()} == {"operator": "operator", "viewer": "viewer",
                                                                "helm-test": "viewer"}
    assert [tokens.TokenEntry.model_validate(e) for e in entries.values()]
    untested = Values("without tests", sets=("tests.enabled=false",))
    assert [e["name"] for e in json.loads(data(untested, "api-tokens")["tokens.json"])] == ["operator", "viewer"]
    assert not [s for s in objects(untested, "Secret") if s["metadata"]["name"] == "five-test-token"]


def test_no_secret_value_is_outside_a_secret(values: Values) -> None:
    rest = yaml.safe_dump([o for o in objects(values) if o["kind"] != "Secret"])
    for secret in objects(values, "Secret"):
        for value in secret["data"].values():
            assert value not in rest and base64.b64decode(value).decode() not in rest


def test_containers_read_them_from_mounted_secrets_only(values: Values) -> None:
    """Child processes inherit the environment, and debuggers show it. extraEnv of the values may have secrets."""
    secret = re.compile(r"TOKEN|PASSWORD|AUTH|SECRET|KEY", re.I)
    for name, _, spec in pods(objects(values)):
        volumes = {v["name"] for v in spec.get("volumes", []) if "secret" in v}
        for c in containers(spec):
            mounts = [m["mountPath"] for m in c["volumeMounts"] if m["name"] in volumes and m["readOnly"] is True]
            for variable in c.get("env", []):
                if not secret.search(variable["name"]):
                    continue
                if variable["name"].startswith(("FIVE_", "REDISCLI_")):
                    assert variable["name"].endswith("_FILE"), (name, variable["name"])
                    assert variable["value"].rpartition("/")[0] in mounts, (name, variable["name"])
                else:
                    assert "secretKeyRef" in variable.get("valueFrom", {}), (name, variable["name"])


def test_a_name_goes_with_each_password(values: Values) -> None:
    """The user name is the component's own unless an external Redis sets none."""
    external = {role for role in acl.ROLES if any("redis.internal" in f for f in values.files) or
                "external-redis" in values.name}
    for name, _, spec in pods(objects(values)):
        for c in containers(spec):
            env = {v["name"]: v for v in c.get("env", [])}
            for role in acl.ROLES:
                if f"FIVE_{role.upper()}_PASSWORD_FILE" not in env:
                    assert f"FIVE_{role.upper()}_USER" not in env
                    continue
                user = env.get(f"FIVE_{role.upper()}_USER", {}).get("value")
                if external and role == "params":
                    assert user is None, name
                else:
                    kind = "probe" if c["name"] == "test" else c["name"]
                    assert user == kind, name


def test_every_key_that_is_read_exists(values: Values) -> None:
    """Checked for generated Secrets; existing ones must have the same keys."""
    made = {s["metadata"]["name"]: set(s["data"]) for s in objects(values, "Secret")}
    known = {"token", "secret", "callers.json", "tokens.json", "state-password", "params-password", "state.acl",
             "params.acl"}
    for name, _, spec in pods(objects(values)):
        for volume in spec.get("volumes", []):
            found = volume.get("secret", {})
            for item in found.get("items", []):
                assert item["key"] in made.get(found["secretName"], {*known, "ca.crt"}), (name, item)


def test_a_given_secret_is_used_and_none_is_made() -> None:
    assert not objects(GIVEN, "Secret")
    given = {secret for secrets in held(GIVEN).values() for secret, _ in secrets}
    assert given == {"our-hashes", *(f"our-calling-{caller}" for caller in CALLERS), "our-people", "our-tester",
                     "our-users", "our-probe", *(f"our-{service}" for service in acl.SERVICES)}
    # Those that are there under the chart's own names are named as those that it makes.
    assert not objects(THERE, "Secret") and held(THERE) == held(DEFAULTS)


def test_secrets_refused_at_runtime_are_refused_at_install() -> None:
    said = refusal(Values("a password that cannot be read", sets=("secrets.redis.rollout.existingSecret=ours",)))
    assert "secrets.redis.rollout.existingSecret: Secret ours cannot be looked at from here" in said
    assert "secrets.redis.users.existingSecret" in said
    said = refusal(Values("a caller's secret that cannot be read", sets=("secrets.callers.play.existingSecret=ours",)))
    assert "secrets.callers.play.existingSecret: Secret ours cannot be looked at from here" in said
    assert "secrets.callers.hashes.existingSecret" in said
    said = refusal(Values("the shared token", sets=("secrets.service.existingSecret=ours",)))
    assert "secrets.service.existingSecret: a value of chart 0.1.0" in said and "secrets.callers.controller" in said
    said = refusal(Values("tokens without one for the tests", sets=("secrets.tokens.existingSecret=ours",)))
    assert "needs a token of its own" in said and "secrets.test.existingSecret" in said
    text(Values("tokens, untested", sets=("secrets.tokens.existingSecret=ours", "tests.enabled=false")))


def test_secrets_outlive_the_release() -> None:
    for name in MADE - {"redis-users", "callers", "test-token"}:  # these are made of the others
        assert find(DEFAULTS, "Secret", name)["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", name


def test_no_secret_changes_a_pods_template() -> None:
    """Each rendering generates new secrets; a secret in a pod template would restart pods at every upgrade."""
    again = Values("defaults, drawn again")
    first, second = ([o for o in objects(v) if o["kind"] != "Secret"] for v in (DEFAULTS, again))
    assert first == second
    assert find(DEFAULTS, "Secret", "callers")["data"] != find(again, "Secret", "callers")["data"]


def test_other_rights_restart_redis() -> None:
    """Redis reads its users at start. Their rights depend on the chart's files and on the run's name."""
    def checksums(values: Values) -> dict[str, str]:
        return {name: meta["annotations"]["checksum/users"] for name, meta, _ in pods(objects(values))
                if "checksum/users" in meta.get("annotations", {})}

    before = checksums(DEFAULTS)
    assert set(before) == {"StatefulSet/five-redis-state", "Deployment/five-redis-params"}
    after = checksums(Values("another run", sets=("run.name=another",)))
    assert all(after[name] != before[name] for name in before)
    assert checksums(Values("more rollouts", sets=("rollout.replicas=3",))) == before


def test_secrets_by_hand_are_those_that_the_chart_would_make() -> None:
    done = subprocess.run([ROOT / "k8s/make-secrets.sh"], capture_output=True, text=True, check=True, timeout=240,
                          env={"PATH": "/usr/bin:/bin", "RUN": "rerun-2"})
    made = {o["metadata"]["name"].removeprefix("five-"): o["stringData"] for o in yaml.safe_load_all(done.stdout) if o}
    assert {name: set(keys) for name, keys in made.items()} == {name: set(data(DEFAULTS, name)) for name in MADE}
    for role in acl.ROLES:
        passwords = {user: [made[f"redis-{user}"][f"{role}-password"]] for user in acl.users(role)}
        assert made["redis-users"][f"{role}.acl"].strip() == acl.acl_file(role, passwords, "rerun-2").strip()
    assert made["callers"]["callers.json"] == callers_text(
        {caller: [made[f"caller-{caller}"]["secret"]] for caller in CALLERS})
    entries = json.loads(made["api-tokens"]["tokens.json"])
    assert {e["sha256"] for e in entries} == {sha256(t.encode()).hexdigest() for t in made["operator-token"].values()}
    assert made["test-token"]["token"] == made["operator-token"]["viewer-token"]


@pytest.mark.parametrize("release", ["dota", "my-five"])
def test_secrets_by_hand_have_the_names_of_the_release(release: str) -> None:
    done = subprocess.run([ROOT / "k8s/make-secrets.sh"], capture_output=True, text=True, check=True, timeout=240,
                          env={"PATH": "/usr/bin:/bin", "RELEASE": release})
    made = {o["metadata"]["name"]: o for o in yaml.safe_load_all(done.stdout) if o}
    rendered = rendering.run("helm4", "template", release, CHART, "--namespace", NAMESPACE).stdout
    secrets = {o["metadata"]["name"]: o for o in yaml.safe_load_all(rendered) if o and o["kind"] == "Secret"}
    assert set(made) == set(secrets)
    assert {o["metadata"]["labels"]["app.kubernetes.io/instance"] for o in made.values()} == {release}
    (users,) = (name for name in made if name.endswith("-redis-users"))
    runs = re.findall(r"~five:([\w-]+):", made[users]["stringData"]["state.acl"])
    assert runs and set(runs) == {release}
