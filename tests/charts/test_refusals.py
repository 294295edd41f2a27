"""Values that cannot work are refused before anything is installed, with the reason."""

import re

import pytest

from tests.charts.rendering import CHART, Values, objects, refusal, run

NO_CERTIFICATE = "there is no certificate. Give tls.{0}.existingSecret (keys tls.crt, tls.key, ca.crt), or " \
             "tls.certManager.issuerRef.name"
CASES = {
    "unknown key": (("rollouts.replicas=3",), "rollouts"),
    "unknown key inside": (("rollout.replica=3",), "replica"),
    "negative replicas": (("rollout.replicas=-1",), "replicas"),
    "replicas in words": (("inference.replicas=many",), "replicas"),
    "unknown mode": (("autoscaling.mode=magic",), "mode"),
    "gRPC without a certificate": (("tls.grpc.enabled=true",), NO_CERTIFICATE.format("grpc")),
    "Redis without a certificate": (("tls.redis.enabled=true",), NO_CERTIFICATE.format("redis")),
    "too many optimizers": (("optimizer.replicas=3",),
                            "3 replicas x 1 each are 3 optimizers, and preset laptop-1v1 is made for 2 at most"),
    "too many GPUs": (("optimizer.replicas=2", "optimizer.gpu.count=8", "run.preset=gpu-node"),
                      "2 replicas x 8 each are 16 optimizers, and preset gpu-node is made for 8 at most"),
    "unknown preset": (("run.preset=laptop-2v2",), 'there is no preset "laptop-2v2"; presets: gpu-node, laptop-1v1'),
    "bounds the wrong way": (("autoscaling.mode=hpa", "autoscaling.rollout.minReplicas=9",
                              "autoscaling.rollout.maxReplicas=3"), "minReplicas 9 is above maxReplicas 3"),
    "bounds the wrong way, for the controller": (
        ("autoscaling.mode=controller", "autoscaling.inference.minReplicas=5"), "minReplicas 5 is above maxReplicas 4"),
    "a state that outgrows its pod": (("redis.state.maxmemory=1gb",),
                                      "1gb of state need half as much again while the file is rewritten, and "
                                      "redis.state.resources.limits.memory is 1Gi"),
    "a claim and a class": (("blobs.existingClaim=ours", "blobs.storageClass=fast"), "leave one of them out"),
    "no games": (("dotaEnv.placement=deployment", "dotaEnv.replicas=0"), "rollouts without games"),
    "two pools of the latest": (("inference.pools.more.serves=latest",), "2 pools serve the latest version"),
    "a model of another size": (("run.overrides.model.lstm=64",), "run.overrides.model changes the model's size"),
    "an unknown section": (("run.overrides.learnign.clip=1",), "learnign"),
    "nothing to follow": (("autoscaling.mode=hpa", "autoscaling.hpa.rollout.externalMetric="),
                          "autoscaling.hpa.rollout: there is nothing to follow"),
    "an ingress behind a closed network policy": (("controller.ingress.enabled=true",),
                                                  "Name its pods in networkPolicy.controllerFrom"),
    "a load balancer before a closed network policy": (("controller.service.type=LoadBalancer",),
                                                       "LoadBalancer: no policy lets its clients in"),
    "a node's port before a closed network policy": (("controller.service.type=NodePort",),
                                                     "NodePort: no policy lets its clients in"),
    "an address of the chart's own": (("run.overrides.services.controller.port=9000",),
                                      "run.overrides.services.controller.port: the chart computes it"),
    "no time to drain": (("optimizer.terminationGracePeriodSeconds=5",),
                         "optimizer.terminationGracePeriodSeconds: 5 s"),
    "no time to drain in a pool": (("inference.pools.default.terminationGracePeriodSeconds=20",),
                                   "inference.pools.default.terminationGracePeriodSeconds: 20 s"),
    "more connections than Redis takes": (
        ("rollout.replicas=9900",), "9900 rollouts, 1 inference servers and 1 optimizers hold 10013 connections"),
    "with a pool for past versions": (
        ("rollout.replicas=9900", "inference.pools.past.serves=past", "inference.pools.past.replicas=50"),
        "9900 rollouts, 51 inference servers and 1 optimizers hold 10163 connections"),
    "more than that when it has grown": (
        ("autoscaling.mode=controller", "autoscaling.rollout.maxReplicas=9000",
         "autoscaling.inference.maxReplicas=400"), "redis.state.maxclients: 9000 rollouts"),
    "a prefix that would be cut": (
        ("nameOverride=" + "b" * 36,), "has 41 characters, at most 40 are allowed, and a cut one could be"),
    "a Redis image without a tag": (("redis.image.tag=",), "redis.image.tag: a tag is required"),
    "an invalid tag": (("global.image.tag=a b",), "tag"),
    "an external Redis with its port": (
        ("redis.state.external.host=redis.example:6380",),
        'redis.state.external.host "redis.example:6380": only a host name or an IP address is allowed; its port is '
        "redis.state.external.port"),
    "a URL of an external Redis": (("redis.params.external.host=redis://redis.example",),
                                   'redis.params.external.host "redis://redis.example": only a host name'),
    "a Sentinel with its port": (
        ("redis.state.external.host=a\\,[fd00::1]:26379", "redis.state.external.sentinel.primary=five"),
        'redis.state.external.host "[fd00::1]:26379": only a host name'),
    "several hosts without Sentinels": (
        ("redis.params.external.host=a\\,b",),
        'redis.params.external.host "a,b": several hosts are Redis Sentinels: set redis.params.external.sentinel'),
    "an invalid port": (("redis.state.external.port=70000",), "port"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_with_the_reason(case: str, helm: str) -> None:
    sets, reason = CASES[case]
    said = refusal(Values(case, sets=sets), helm)
    assert reason in said, said


def test_a_release_name_that_services_cannot_have_is_refused(helm: str) -> None:
    """helm accepts a leading digit and dots; Kubernetes would refuse the Services after half of the objects."""
    def errors(release: str, *sets: str) -> str:
        return run(helm, "template", release, CHART, *Values("", sets=sets).arguments()).stderr

    assert 'fullnameOverride: the objects\' prefix "1v1-five" is invalid' in errors("1v1")
    dotted = errors("five.v2")
    assert 'prefix "five.v2" is invalid' in dotted and 'run.name: the run would have the release\'s name' in dotted
    assert not errors("five.v2", "fullnameOverride=five", "run.name=five-v2")
    assert not errors("v1", "run.name=1v1")


def test_all_refusals_are_reported_together() -> None:
    said = refusal(Values("several", sets=(
        "optimizer.replicas=3", "rollout.terminationGracePeriodSeconds=5", "tls.redis.enabled=true",
        "autoscaling.mode=controller", "autoscaling.rollout.minReplicas=17", "controller.ingress.enabled=true",
        "redis.state.maxmemory=2gb")))
    listed = re.findall(r"^  - (\S+?):", said, re.M)
    assert sorted(listed) == ["autoscaling.rollout", "controller.ingress.enabled", "optimizer", "redis.state.maxmemory",
                              "rollout.terminationGracePeriodSeconds", "tls.redis.enabled"]


def test_the_same_values_are_fine_where_they_do_not_matter() -> None:
    objects(Values("bounds that nobody reads", sets=("autoscaling.rollout.minReplicas=17",)))
    objects(Values("a Redis elsewhere", sets=("redis.state.maxmemory=2gb", "redis.state.external.host=a.example")))
    for limit in ("768Mi", "0.75Gi", "806M", "1000000k"):
        objects(Values(limit, sets=(f"redis.state.resources.limits.memory={limit}",)))
