"""Values that cannot work are refused before anything is installed, with the reason."""

import pytest

from tests.charts.rendering import Values, refusal

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
    "nothing to follow": (("autoscaling.mode=hpa", "autoscaling.hpa.rollout.externalMetric="),
                          "autoscaling.hpa.rollout: there is nothing to follow"),
    "an ingress behind a closed door": (("controller.ingress.enabled=true",),
                                        "Name its pods in networkPolicy.controllerFrom"),
    "an address of the chart's own": (("run.overrides.services.controller.port=9000",),
                                      "run.overrides.services.controller.port: the chart computes it"),
    "no time to drain": (("optimizer.terminationGracePeriodSeconds=5",),
                         "optimizer.terminationGracePeriodSeconds: 5 s"),
    "a tag that is none": (("global.image.tag=a b",), "tag"),
    "a port that is none": (("redis.state.external.port=70000",), "port"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_with_the_reason(case: str, helm: str) -> None:
    sets, reason = CASES[case]
    said = refusal(Values(case, sets=sets), helm)
    assert reason in said, said


def test_all_reasons_are_told_at_once() -> None:
    said = refusal(Values("several", sets=("optimizer.replicas=3", "rollout.terminationGracePeriodSeconds=5")))
    assert "3 optimizers" in said and "rollout.terminationGracePeriodSeconds" in said
