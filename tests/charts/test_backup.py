"""The CronJob that backs up a run's state, off by default."""

import argparse

import pytest

from five.cli import backup
from tests.charts.rendering import Object, Values, containers, find, matches, objects, pods, refusal
from tests.charts.test_render import KUBERNETES, problems
from tests.charts.test_secrets import held
from tests.charts.test_workloads import violations

ON = Values("backup", sets=("backup.enabled=true",))
BUCKET = Values("backup to a bucket", sets=("backup.enabled=true", "blobs.url=s3://bucket/five",
                                            "tls.redis.enabled=true", "tls.redis.existingSecret=ours"))


def pod(values: Values) -> tuple[Object, Object]:
    return next((meta, spec) for name, meta, spec in pods(objects(values)) if name == "CronJob/five-backup")


def test_nothing_of_it_by_default() -> None:
    assert not objects(Values("defaults"), "CronJob")


@pytest.mark.parametrize("version", KUBERNETES)
def test_it_is_valid_and_restricted(version: str) -> None:
    for values in (ON, BUCKET):
        (job,) = objects(values, "CronJob")
        assert problems(job, version) == []
        assert violations(*pod(values)) == []


def test_a_schedule_has_five_fields_or_a_name() -> None:
    for schedule in ("@daily", "@every 6h", "*/30 * * * *", "17 3 * * mon-fri"):
        (job,) = objects(Values(schedule, sets=("backup.enabled=true", f"backup.schedule={schedule}")), "CronJob")
        assert job["spec"]["schedule"] == schedule
    for schedule in ("@noon", "17 3 * *", "every night"):
        assert "schedule" in refusal(Values(schedule, sets=(f"backup.schedule={schedule}",)))


def test_the_job_runs_five_backup() -> None:
    (container,) = containers(pod(ON)[1])
    parser = argparse.ArgumentParser()
    backup.add_arguments(parser, restoring=False)
    verb, *arguments = container["args"]
    given = parser.parse_args(arguments)
    assert (verb, given.file, given.keep, given.config) == ("save", "blobs:", 14, "/etc/five/run.yaml")


def test_only_its_pod_holds_the_admins_password() -> None:
    holders = {where for where, secrets in held(ON).items() if ("redis-admin", "state-password") in secrets}
    assert holders == {"backup:backup"}
    assert held(ON)["backup:backup"] == {("redis-admin", "state-password")}


def test_the_job_mounts_the_blobs_and_reaches_redis() -> None:
    labels, spec = pod(ON)
    assert any(v.get("persistentVolumeClaim", {}).get("claimName") == "five-blobs" for v in spec["volumes"])
    assert spec["affinity"]["podAffinity"], "the volume is on one node"
    assert not any("persistentVolumeClaim" in v for v in pod(BUCKET)[1]["volumes"])
    policy = find(ON, "NetworkPolicy", "redis-state")["spec"]
    peers = [peer["podSelector"] for rule in policy["ingress"] for peer in rule["from"]]
    assert any(matches(peer, labels["labels"]) for peer in peers)
    own = find(ON, "NetworkPolicy", "backup")["spec"]
    assert own["ingress"] == [] and matches(own["podSelector"], labels["labels"])


def test_it_logs_in_as_admin_only_where_redis_has_users() -> None:
    def environment(*sets: str) -> set[str]:
        (container,) = containers(pod(Values("backup", sets=("backup.enabled=true", *sets)))[1])
        return {variable["name"] for variable in container["env"]}

    assert "FIVE_STATE_USER" in environment() & environment("redis.state.external.host=a.example")
    assert "FIVE_STATE_USER" not in environment("redis.state.external.host=a.example",
                                                "redis.state.external.users=false")


def test_a_private_authority_reaches_the_job() -> None:
    mounted = Values("private authority", sets=(
        "backup.enabled=true", "backup.extraVolumes[0].name=authority", "backup.extraVolumes[0].secret.secretName=ours",
        "backup.extraVolumeMounts[0].name=authority", "backup.extraVolumeMounts[0].mountPath=/etc/authority",
        "backup.extraEnv[0].name=SSL_CERT_FILE", "backup.extraEnv[0].value=/etc/authority/ca.crt"))
    spec = pod(mounted)[1]
    (container,) = containers(spec)
    assert {"name": "authority", "mountPath": "/etc/authority"} in container["volumeMounts"]
    assert {"name": "authority", "secret": {"secretName": "ours"}} in spec["volumes"]
    assert {"name": "SSL_CERT_FILE", "value": "/etc/authority/ca.crt"} in container["env"]


def test_the_jobs_environment_replaces_the_global_one() -> None:
    """helm 4 refuses duplicate environment variables."""
    values = Values("one certificate for all", sets=(
        "backup.enabled=true", "global.extraEnv[0].name=SSL_CERT_FILE", "global.extraEnv[0].value=/all/ca.crt",
        "backup.extraEnv[0].name=SSL_CERT_FILE", "backup.extraEnv[0].value=/own/ca.crt"))
    (container,) = containers(pod(values)[1])
    assert [v["value"] for v in container["env"] if v["name"] == "SSL_CERT_FILE"] == ["/own/ca.crt"]
    taken = Values("the chart's own variable", sets=("backup.enabled=true", "backup.extraEnv[0].name=FIVE_STATE_USER",
                                                     "backup.extraEnv[0].value=x"))
    assert "backup.extraEnv: FIVE_STATE_USER is the chart's own" in refusal(taken)
