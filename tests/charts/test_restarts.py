"""A changed value restarts only the components that read it: the table of docs/operations.md and its basis."""

import pytest
import yaml

from tests.charts.rendering import CHART, ROOT, Values, find, objects, pods
from tests.charts.restarts_table import changes, restarted, rows, told
from tools.config_reads import FILE

PAGE = (ROOT / "docs/operations.md").read_text()


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return rows()


def test_the_table_is_that_of_the_page(found: dict[str, list[str]]) -> None:
    """`make generate` writes the table; it is parsed so that the order of rows does not matter."""
    assert told(PAGE) == found


def test_each_section_restarts_its_own_pods(found: dict[str, list[str]]) -> None:
    autoscaler = "run.overrides.services.controller.autoscaler."
    for path, names in found.items():
        if path.startswith("run.overrides.league."):
            assert names == ["opponents"], path
        elif path.startswith(("run.overrides.services.evaluator.", "run.overrides.rating.", "evaluator.")):
            assert names == (["controller", "evaluator"] if path == "evaluator.enabled" else ["evaluator"]), path
        elif path.startswith(("autoscaling.rollout.", "autoscaling.inference.", "autoscaling.hpa.")):
            assert names == [], path
        elif path.startswith(autoscaler):
            assert names == (["controller"] if path == f"{autoscaler}timeout_seconds" else []), path
        elif path in ("opponents.replicas", "opponents.podDisruptionBudget.maxUnavailable"):
            assert names == [], path
        elif path.startswith("opponents."):
            assert names == ["opponents"], path
        else:
            assert (path, names) == ("autoscaling.mode", ["controller"])
    assert len(found) > 40 and len(found) == len(list(changes()))


def test_a_key_that_all_read_restarts_all() -> None:
    services = ["controller", "evaluator", "inference", "opponents", "optimizer", "rollout"]
    assert restarted("run.overrides.telemetry.log_json=true") == services
    assert restarted("run.overrides.learning.gae_lambda=0.9") == ["optimizer", "rollout"]
    assert restarted("run.overrides.services.inference.max_batch=64") == ["inference"]
    assert restarted("run.overrides.services.dota_env.threads=2") == ["rollout"], "the games are in its pods"


def test_larger_stores_restart_no_service() -> None:
    """The limits that the chart derives from their sizes hold from a pod's next start on."""
    assert restarted("blobs.size=10Gi") == []
    assert restarted("redis.state.maxmemory=256mb") == ["redis-state"]
    assert restarted("run.overrides.store.max_archived=7") == restarted("run.overrides.telemetry.log_json=true")


def test_games_in_pods_of_their_own_restart_by_themselves() -> None:
    apart = ("dotaEnv.placement=deployment",)
    before, after = ({name: meta["annotations"] for name, meta, _ in pods(objects(Values("games", sets=sets)))
                      if "checksum/run-config" in meta.get("annotations", {})}
                     for sets in (apart, (*apart, "run.overrides.services.dota_env.threads=2")))
    assert [name for name in before if before[name] != after[name]] == ["Deployment/five-dota-env"]


def test_a_step_of_readers_restarts_the_parameters_redis() -> None:
    assert restarted("autoscaling.inference.maxReplicas=8") == []
    assert restarted("autoscaling.inference.maxReplicas=9") == ["redis-params"]


def test_the_checksum_has_all_that_a_component_reads() -> None:
    """A key that a component reads is part of the checksum in its pod annotations; one key is tried for each component.
    """
    reads = yaml.safe_load(FILE.read_text())
    assert reads.keys() == {"rollout", "dota-env", "inference", "optimizer", "controller", "opponents", "evaluator",
                            "play", "dotaservice"}
    assert FILE == CHART / "files/reads.yaml"
    for component, change in (("rollout", "services.rollout.games=5"), ("inference", "services.inference.max_batch=9"),
                              ("optimizer", "services.optimizer.threads=3"), ("evaluator", "rating.games_per_round=9"),
                              ("controller", "services.controller.reconcile_seconds=2"),
                              ("opponents", "league.max_quality_drop=2")):
        assert component in restarted(f"run.overrides.{change}"), change


def test_controller_mounts_autoscaler_settings_as_folder() -> None:
    """A ConfigMap file mounted by subPath never updates."""
    spec = find(Values("defaults"), "Deployment", "controller")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    (config,) = (a.partition("=")[2] for a in container["args"] if a.startswith("--config="))
    (mount,) = (m for m in container["volumeMounts"] if config == f"{m['mountPath']}/run.yaml")
    assert "subPath" not in mount
    (volume,) = (v for v in spec["volumes"] if v["name"] == mount["name"])
    assert volume["configMap"]["name"] == "five-run"
