"""helm installs, upgrades and removes releases against an API server that refuses what Kubernetes refuses."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from rapid.rpc.access import Caller
from rapid.rpc.callers import callers_text
from rapid.store import acl
from tests.charts import releases
from tests.charts.releases import TESTED, Objects, Release, claims, later_chart, later_tag, release, secrets, templates
from tests.charts.rendering import HELMS, ROOT, Object

PAGE = (ROOT / "docs/operations.md").read_text()
README = (ROOT / "charts/README.md").read_text()
KEPT_SECRETS = {*(f"five-caller-{caller}" for caller in Caller if caller is not Caller.CLI), "five-api-tokens",
                "five-operator-token", *(f"five-redis-{user}" for user in (*acl.SERVICES, acl.PROBE, acl.ADMIN))}
MADE_OF_THEM = {"five-redis-users", "five-callers", "five-test-token"}
KEPT_CLAIMS = {"five-blobs", "data-five-redis-state-0"}
TAG = later_tag()
UPGRADE = ("--set-string", f"global.image.tag={TAG}", "--set", "rollout.replicas=3",
           "--set", "optimizer.resources.limits.memory=9Gi,run.overrides.seed=7,blobs.size=40Gi")


def section(title: str) -> str:
    """Return one chapter of docs/operations.md."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def entries(found: dict[str, Object]) -> list[dict[str, str]]:
    """Return the controller's token entries."""
    return list(json.loads(b64decode(found["five-api-tokens"]["tokens.json"])))


def people(found: dict[str, Object]) -> list[dict[str, str]]:
    """Return the token entries that belong to people."""
    return [entry for entry in entries(found) if entry["name"] != "helm-test"]


@pytest.fixture(scope="module", params=HELMS)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """Return the objects after each step of a release's life."""
    folder = tmp_path_factory.mktemp("story")
    with release(request.param, folder) as r:
        steps = {}

        def step(name: str, *commands: str) -> None:
            for command in commands:
                program, _, arguments = command.partition(" ")
                r.done(arguments, program=program)
            steps[name] = r.objects()

        chart = later_chart(folder, "7.8.9", "9.9.9")
        step("installed", "helm install five charts --create-namespace")
        step("upgraded", " ".join(("helm upgrade five", str(chart), *UPGRADE)))
        if TESTED:
            step("tested", "helm test five")
        step("uninstalled", "helm uninstall five")
        step("installed again", "helm install five charts --set blobs.size=40Gi")
        step("removed", "helm uninstall five", re.findall(r"^ *(kubectl -n five delete pod,.*)$", README, re.M)[0])
    return steps


def test_upgrade_and_reinstall_keep_secrets_and_volumes(story: dict[str, Objects]) -> None:
    first = story["installed"]
    assert secrets(first).keys() == KEPT_SECRETS | MADE_OF_THEM and all(map(len, secrets(first).values()))
    assert claims(first).keys() == KEPT_CLAIMS
    assert secrets(story["upgraded"]) == secrets(first)
    for step in ("upgraded", "uninstalled", "installed again"):
        found = secrets(story[step])
        # The token of `helm test` is drawn again with the release, and its hash with it; nobody else's changes.
        assert {n: found[n] for n in KEPT_SECRETS - {"five-api-tokens"}} == {
            n: secrets(first)[n] for n in KEPT_SECRETS - {"five-api-tokens"}}, step
        assert people(found) == people(secrets(first)), step
        assert claims(story[step]) == claims(first), step
    assert secrets(story["uninstalled"]).keys() == KEPT_SECRETS
    again = secrets(story["installed again"])
    assert again["five-redis-users"] == secrets(first)["five-redis-users"]
    (tester,) = (e["sha256"] for e in entries(again) if e["name"] == "helm-test")
    assert tester == sha256(b64decode(again["five-test-token"]["token"])).hexdigest()


def test_an_upgrade_applies_the_new_values(story: dict[str, Objects]) -> None:
    found = story["upgraded"]
    assert found["deployments.apps", "five-rollout"]["spec"]["replicas"] == 3
    (optimizer,) = templates(found)["five-optimizer"]["spec"]["containers"]
    assert optimizer["image"].endswith(f":{TAG}") and optimizer["resources"]["limits"]["memory"] == "9Gi"
    assert found["persistentvolumeclaims", "five-blobs"]["spec"]["resources"]["requests"]["storage"] == "40Gi"
    assert "seed: 7" in found["configmaps", "five-run"]["data"]["run.yaml"]


def test_upgrade_restarts_services_but_not_redis(story: dict[str, Objects]) -> None:
    before, after = templates(story["installed"]), templates(story["upgraded"])
    changed = {name for name in before
               if before[name]["metadata"]["annotations"] != after[name]["metadata"]["annotations"]}
    assert changed == {"five-evaluator", "five-opponents", "five-optimizer", "five-rollout"}, "who reads `seed`"
    for name in ("five-redis-state", "five-redis-params"):
        assert before[name] == after[name]


def test_uninstall_leaves_the_documented_objects(story: dict[str, Objects]) -> None:
    kinds = {"PersistentVolumeClaim": "persistentvolumeclaims", "Secrets": "secrets", "pods": "pods"}
    listed = {(kinds[row.split()[0]], name) for row in re.findall(r"^\| (\w+ `.*?) \|", section("Uninstall"), re.M)
              for name in re.findall(r"`((?:data-)?five-[^`]+)`", row)}
    listed = {(kind, name) for kind, name in listed if TESTED or kind != "pods"}
    left = {(resource, re.sub(r"^five-test-.*", "five-test-...", name)) for resource, name in story["uninstalled"]}
    assert left == listed


def test_the_command_that_removes_everything_does(story: dict[str, Objects]) -> None:
    assert story["removed"] == {}


def test_real_cluster_upgrades_to_a_tag_that_it_can_pull(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("global: {image: {tag: installed}}")
    monkeypatch.setattr(releases, "CLUSTER", "kubeconfig")
    monkeypatch.setattr(releases, "CLUSTER_VALUES", str(values))
    monkeypatch.delenv("FIVE_CLUSTER_TAG", raising=False)
    assert later_tag() == "installed"
    monkeypatch.setenv("FIVE_CLUSTER_TAG", "second")
    assert later_tag() == "second"


@pytest.fixture
def fresh(helm: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """A release that is not installed yet."""
    with release(helm, tmp_path_factory.mktemp("release")) as r:
        yield r


def test_a_rollback_brings_images_back_and_no_secrets(fresh: Release) -> None:
    fresh.done("install five charts")
    first = fresh.objects()
    fresh.done("upgrade five charts --set rollout.replicas=3 --set-string global.image.tag=v9")
    assert templates(fresh.objects()) != templates(first)
    fresh.done("rollback five 1")
    again = fresh.objects()
    assert templates(again) == templates(first)
    assert again["deployments.apps", "five-rollout"]["spec"]["replicas"] == 1
    assert secrets(again) == secrets(first) and claims(again) == claims(first)


def test_rotation_survives_rollback_but_not_upgrade(fresh: Release) -> None:
    fresh.done("install five charts")
    old = secrets(fresh.objects())
    # As k8s/rotate.sh leaves them while both secrets are accepted.
    accepted = {caller: [b64decode(old[f"five-caller-{caller}"]["secret"]).decode()]
                for caller in Caller if caller is not Caller.CLI}
    (before,) = accepted[Caller.ROLLOUT]
    patch = json.dumps({"stringData": {"secret": "a-new-secret", "secret-also": f"{before},another"}})
    fresh.done("patch secret five-caller-rollout -p", patch, program="kubectl")
    accepted[Caller.ROLLOUT] = ["a-new-secret", before, "another"]
    known = json.dumps(callers_text(accepted))
    fresh.done("patch secret five-callers -p", f'{{"stringData": {{"callers.json": {known}}}}}', program="kubectl")
    rotated = secrets(fresh.objects())
    assert rotated["five-caller-rollout"]["secret"] != old["five-caller-rollout"]["secret"]
    fresh.done("upgrade five charts --set rollout.replicas=3")
    assert secrets(fresh.objects()) == rotated
    values = fresh.folder / "old.yaml"
    values.write_text(fresh.done("get values five --revision 1 -o yaml"))
    fresh.done("upgrade five charts --reset-values -f", values)
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 1
    assert secrets(fresh.objects()) == rotated
    if fresh.helm == "helm4":
        said = fresh.refused("rollback five 1")
        assert 'conflict with "kubectl-patch" using v1: .data.' in said
        assert secrets(fresh.objects()) == rotated
    else:
        fresh.done("rollback five 1")
        assert secrets(fresh.objects()) == old
    assert "helm upgrade five ./charts -n five --reset-values -f old.yaml" in section("Roll back")


def test_rotation_keeps_both_passwords_and_added_tokens(fresh: Release) -> None:
    fresh.done("install five charts")
    first = secrets(fresh.objects())
    old = b64decode(first["five-redis-rollout"]["state-password"]).decode()
    fresh.done("patch secret five-redis-rollout -p",
               json.dumps({"stringData": {"state-password": "new", "state-password-old": old}}), program="kubectl")
    ada = {"name": "ada", "role": "operator", "sha256": "0" * 64}
    fresh.done("patch secret five-api-tokens -p",
               json.dumps({"stringData": {"tokens.json": json.dumps([ada, *entries(first)])}}), program="kubectl")
    fresh.done("upgrade five charts --set rollout.replicas=3")
    found = secrets(fresh.objects())
    users = b64decode(found["five-redis-users"]["state.acl"]).decode()
    assert f"user rollout on {acl.hash_password('new')} {acl.hash_password(old)} resetchannels" in users
    assert b64decode(found["five-redis-rollout"]["state-password-old"]).decode() == old
    assert ada in entries(found) and len(entries(found)) == 4
    # Finished, the old one is gone, and stays so.
    fresh.done("patch secret five-redis-rollout -p", '{"data": {"state-password-old": null}}', program="kubectl")
    fresh.done("upgrade five charts --set rollout.replicas=4")
    users = b64decode(secrets(fresh.objects())["five-redis-users"]["state.acl"]).decode()
    assert f"user rollout on {acl.hash_password('new')} resetchannels" in users


GIVEN = {**{f"callers.{caller}": {"secret"} for caller in Caller if caller is not Caller.CLI},
         "tokens": {"tokens.json"}, "test": {"token"},
         **{f"redis.{user}": {f"{role}-password" for role in acl.ROLES if user in acl.users(role)}
            for user in (*acl.SERVICES, acl.PROBE, acl.ADMIN)}}


def test_given_secrets_are_used_and_none_is_made(fresh: Release) -> None:
    sets = []
    for name, keys in GIVEN.items():
        secret = "our-" + name.replace(".", "-")
        literals = " ".join(f"--from-literal={key}={name}-{key}" for key in sorted(keys))
        fresh.done(f"create secret generic {secret} {literals}", program="kubectl")
        sets.append(f"secrets.{name}.existingSecret={secret}")
    given = secrets(fresh.objects())
    done = len(fresh.store.writes)
    wrong = [s.replace("our-redis-inference", "our-redis-rollout").replace("our-tokens", "our-test") for s in sets]
    said = fresh.refused(f"install five charts --set {','.join(wrong)}")
    assert "secrets.redis.inference.existingSecret: Secret our-redis-rollout has no key params-password" in said
    assert "secrets.tokens.existingSecret: Secret our-test has no key tokens.json" in said
    missing = fresh.refused(f"install five charts --set {','.join(sets).replace('our-redis-admin', 'nowhere')}")
    assert "secrets.redis.admin.existingSecret: Secret nowhere cannot be looked at from here" in missing
    assert len(fresh.store.writes) == done
    fresh.done(f"install five charts --set {','.join(sets)}")
    found = secrets(fresh.objects())
    # Only the Secrets with the hashes of passwords and tokens are left to create.
    assert found.keys() - given.keys() == {"five-redis-users", "five-callers"} and given.items() <= found.items()
    callers = {caller: [f"callers.{caller}-secret"] for caller in Caller if caller is not Caller.CLI}
    assert b64decode(found["five-callers"]["callers.json"]).decode() == callers_text(callers)
    for role in acl.ROLES:
        passwords = {user: [f"redis.{user}-{role}-password"] for user in acl.users(role)}
        made = b64decode(found["five-redis-users"][f"{role}.acl"]).decode()
        assert made == acl.acl_file(role, passwords, "five")


@pytest.mark.parametrize("values, reason", [
    ("rolout.replicas=2", "rolout"),
    ("rollout.replicas=-1", "replicas"),
    ("tls.grpc.enabled=true", "there is no certificate"),
    ("optimizer.replicas=3", "preset laptop-1v1 is made for 2 at most"),
    ("rollout.extraEnv[0].name=FIVE_CALLERS_FILE,rollout.extraEnv[0].value=x",
     "FIVE_CALLERS_FILE is the chart's own"),
])
def test_bad_values_are_refused_before_anything_is_written(fresh: Release, values: str, reason: str) -> None:
    said = fresh.refused("install five charts --set", values)
    assert reason in said, said
    assert fresh.store.writes == [] and fresh.objects() == {}


def test_a_size_that_an_autoscaler_has_set_stays(fresh: Release) -> None:
    fresh.done("install five charts --set rollout.replicas=4")
    fresh.done("upgrade five charts --set autoscaling.mode=controller")
    rollout = fresh.object("deployments.apps", "rollout")
    assert rollout["spec"]["replicas"] == 4, "switching it on keeps what there is"
    fresh.autoscaler_sets("five-rollout", 7)
    fresh.done("upgrade five charts --set autoscaling.mode=controller,rollout.resources.limits.cpu=3")
    rollout = fresh.object("deployments.apps", "rollout")
    assert rollout["spec"]["replicas"] == 7
    assert rollout["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] in (3, "3")
    # Again, with an object that names a size and a size that is another by now.
    fresh.autoscaler_sets("five-rollout", 9)
    fresh.done("upgrade five charts --set autoscaling.mode=controller")
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 9
    back = "upgrade five charts --set rollout.replicas=4"
    if fresh.helm == "helm4":
        assert 'with subresource "scale" using apps/v1: .spec.replicas' in fresh.refused(back)
        back += " --force-conflicts"
    fresh.done(back)
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 4


def test_a_size_that_kubectl_has_set(fresh: Release) -> None:
    """helm 4 refuses a replica count owned by kubectl until --force-conflicts; helm 3 overwrites it."""
    fresh.done("install five charts")
    for size in (7, 1):
        fresh.done(f"scale deployment/five-rollout --replicas={size}", program="kubectl")
    if fresh.helm == "helm4":
        said = fresh.refused("upgrade five charts --set rollout.replicas=3")
        assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in said
        fresh.done("upgrade five charts --set rollout.replicas=3 --force-conflicts")
    else:
        fresh.done("upgrade five charts --set rollout.replicas=3")
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 3
    fresh.done("upgrade five charts --set rollout.replicas=5")
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 5


def test_values_that_kubernetes_refuses_are_refused_first(fresh: Release) -> None:
    fresh.done("install five charts")
    before, done = fresh.objects(), len(fresh.store.writes)
    said = fresh.refused("upgrade five charts --set redis.state.persistence.size=9Gi,global.storageClass=fast,"
                         "blobs.size=10Gi,blobs.accessModes={ReadWriteMany},rollout.replicas=2")
    assert sorted(re.findall(r"^  - (\S+?):", said, re.M)) == [
        "blobs.accessModes", "blobs.size", "blobs.storageClass", "redis.state.persistence.size",
        "redis.state.persistence.storageClass"]
    assert fresh.objects() == before and len(fresh.store.writes) == done
    fresh.done("upgrade five charts --set redis.state.persistence.size=8192Mi,blobs.size=20480Mi")
    assert claims(fresh.objects()) == claims(before)


def test_a_name_that_selectors_follow_is_refused_by_kubernetes(fresh: Release) -> None:
    """The in-memory server enforces this rule, so that the upgrade tests above can fail."""
    fresh.done("install five charts")
    said = fresh.refused("upgrade five charts --set nameOverride=other,fullnameOverride=five")
    assert "field is immutable" in said and "updates to statefulset spec" in said


@pytest.mark.parametrize("before, after, more", [
    ("gpu-cluster", "paper", ""), ("laptop", "gpu-node", "run.name=larger,")])
def test_the_next_larger_values(fresh: Release, before: str, after: str, more: str) -> None:
    files = [f"-f charts/values-{before}.yaml", f"-f charts/values-{after}.yaml"]
    fresh.done(f"install five charts {files[0]}")
    first = fresh.objects()
    larger = " ".join(files if more == "" else files[1:])
    said = fresh.refused(f"upgrade five charts {larger}")
    size = re.search(r"redis.state.persistence.size: this release has (\w+),", said)
    assert size and fresh.objects() == first
    fresh.done(f"upgrade five charts {larger} --set {more}redis.state.persistence.size={size[1]}")
    found = fresh.objects()
    assert templates(found) != templates(first)
    # Another name of the run is other keys in the users' rights.
    kept, before = secrets(found), secrets(first)
    assert {n: kept[n] for n in KEPT_SECRETS} == {n: before[n] for n in KEPT_SECRETS}
    assert (kept["five-redis-users"] == before["five-redis-users"]) == (more == "")
    assert claims(found) == claims(first)


def test_helm_4_takes_over_what_helm_3_has_installed(tmp_path: Path) -> None:
    with release("helm3", tmp_path) as r:
        r.done("install five charts")
        first = r.objects()
        r.helm = "helm4"
        r.done("upgrade five charts --set rollout.replicas=3 --set-string global.image.tag=v9")
        assert r.object("deployments.apps", "rollout")["spec"]["replicas"] == 3
        r.done("rollback five 1")
        found = r.objects()
        assert templates(found) == templates(first)
        assert secrets(found) == secrets(first) and claims(found) == claims(first)


def test_a_rollback_over_a_larger_volume_is_refused(fresh: Release) -> None:
    fresh.done("install five charts")
    fresh.done("upgrade five charts --set blobs.size=40Gi,rollout.replicas=3")
    assert "field can not be less than status.capacity" in fresh.refused("rollback five 1")
    fresh.done("upgrade five charts --reset-values --set blobs.size=40Gi")
    assert fresh.object("deployments.apps", "rollout")["spec"]["replicas"] == 1


def test_rollback_over_existing_secrets(fresh: Release) -> None:
    fresh.done("install five charts")
    first = fresh.objects()
    fresh.done("upgrade five charts --set blobs.url=s3://bucket/five")
    assert claims(fresh.objects()) == claims(first)
    if fresh.helm == "helm4":
        fresh.done("rollback five 1")
        assert templates(fresh.objects()) == templates(first)
    else:
        assert 'no PersistentVolumeClaim with the name "five-blobs" found' in fresh.refused("rollback five 1")
        fresh.done("upgrade five charts --reset-values --set blobs.url=")
        assert templates(fresh.objects()) == templates(first)
    assert claims(fresh.objects()) == claims(first)


def test_the_kinds_of_other_projects(fresh: Release) -> None:
    """Certificates and monitors have no merge keys; helm 3 patches them with a JSON merge patch."""
    files = [part for name in ("tls-cert-manager", "monitoring", "hpa", "ingress", "deployment-placement")
             for part in ("-f", f"charts/ci/{name}-values.yaml")]
    fresh.done("install five charts", *files)
    first = fresh.objects()
    assert {"certificates.cert-manager.io", "prometheusrules.monitoring.coreos.com", "ingresses.networking.k8s.io",
            "horizontalpodautoscalers.autoscaling"} <= {resource for resource, _ in first}
    fresh.done("upgrade five charts", *files, "--set", "tls.certManager.duration=1440h",
               "--set", "autoscaling.rollout.maxReplicas=17",
               "--set", "monitoring.serviceMonitor.interval=30s,monitoring.prometheusRule.enabled=false")
    found = fresh.objects()
    assert found["certificates.cert-manager.io", "five-grpc"]["spec"]["duration"] == "1440h"
    assert found["horizontalpodautoscalers.autoscaling", "five-rollout"]["spec"]["maxReplicas"] == 17
    assert first.keys() - found.keys() == {("prometheusrules.monitoring.coreos.com", "five")}
    fresh.done("rollback five 1")
    again = fresh.objects()
    assert again.keys() == first.keys()
    assert {key: o.get("spec") for key, o in again.items()} == {key: o.get("spec") for key, o in first.items()}


def test_a_laptops_data_go_with_the_release(fresh: Release) -> None:
    fresh.done("install five charts -f charts/values-laptop.yaml")
    assert claims(fresh.objects()).keys() == KEPT_CLAIMS
    fresh.done("uninstall five")
    assert fresh.objects().keys() == {("secrets", name) for name in KEPT_SECRETS}


def test_a_components_environment_is_in_place_of_the_global(fresh: Release) -> None:
    """helm 4 refuses duplicate environment variables."""
    variables = ("global.extraEnv[0].name=A,global.extraEnv[0].value=all,global.extraEnv[1].name=B,"
                 "global.extraEnv[1].value=$(A),rollout.extraEnv[0].name=A,rollout.extraEnv[0].value=own")
    fresh.done("install five charts --set", variables)
    for name, value in (("rollout", "own"), ("evaluator", "all")):
        container = fresh.object("deployments.apps", name)["spec"]["template"]["spec"]["containers"][0]
        assert [v["value"] for v in container["env"] if v["name"] == "A"] == [value]
        assert any(v == {"name": "B", "value": "$(A)"} for v in container["env"])
