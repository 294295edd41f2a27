"""Labels and annotations that values set on the chart's objects; test_pod_settings.py covers those of pods."""

from collections.abc import Iterator

from tests.charts.rendering import Object, Values, objects, pods, refusal
from tests.charts.rendering import find as found

WORKLOADS = {"Deployment", "StatefulSet"}
GLOBAL = Values("metadata of all", sets=("global.labels.team=rl", "global.annotations.note=all"))
OWN = Values("metadata of each", sets=(
    "global.labels.team=rl", "global.annotations.note=all", "rollout.labels.team=games", "rollout.annotations.note=own",
    "dotaEnv.placement=deployment", "dotaEnv.labels.a=games", "inference.labels.a=b", "redis.state.labels.a=state",
    "redis.state.annotations.note=state", "controller.annotations.note=own",
    "controller.service.annotations.note=balancer",
    "optimizer.labels.helm\\.sh/chart=mine", "optimizer.labels.app\\.kubernetes\\.io/name=mine"))


def annotations(o: Object) -> Object:
    return dict(o["metadata"].get("annotations", {}))


def test_global_metadata_is_on_every_object() -> None:
    assert [o["metadata"]["name"] for o in objects(GLOBAL) if o["metadata"]["labels"].get("team") != "rl"] == []
    said = {o["kind"] for o in objects(GLOBAL) if annotations(o).get("note") == "all"}
    assert said == {*WORKLOADS, "Service"}
    assert all(annotations(o)["note"] == "all" for o in objects(GLOBAL) if o["kind"] in said)


def test_a_components_own_come_first() -> None:
    labels = {name: found(OWN, kind, name)["metadata"]["labels"] for kind, name in (
        ("Deployment", "rollout"), ("Deployment", "dota-env"), ("Deployment", "inference"), ("Service", "redis-state"))}
    assert labels["rollout"]["team"] == "games" and labels["inference"]["team"] == "rl"
    assert [labels[name]["a"] for name in ("dota-env", "inference", "redis-state")] == ["games", "b", "state"]
    notes = {(kind, name): annotations(found(OWN, kind, name))["note"] for kind, name in (
        ("Deployment", "rollout"), ("StatefulSet", "redis-state"), ("Service", "redis-params"),
        ("Deployment", "controller"), ("Service", "controller"), ("StatefulSet", "optimizer"))}
    assert list(notes.values()) == ["own", "state", "all", "own", "balancer", "all"]


def test_a_pools_own_come_before_those_of_inference() -> None:
    values = Values("metadata of a pool", sets=(
        "inference.labels.a=all", "inference.annotations.note=all", "inference.pools.past.serves=past",
        "inference.pools.past.labels.a=past", "inference.pools.past.annotations.note=past"))
    for pool, said in (("inference", "all"), ("inference-past", "past")):
        for kind in ("Deployment", "Service", "PodDisruptionBudget"):
            assert found(values, kind, pool)["metadata"]["labels"]["a"] == said, (kind, pool)
        assert [annotations(found(values, kind, pool))["note"] for kind in ("Deployment", "Service")] == [said] * 2


def test_none_takes_the_place_of_the_charts_labels() -> None:
    plain = found(Values("defaults"), "StatefulSet", "optimizer")["metadata"]["labels"]
    assert found(OWN, "StatefulSet", "optimizer")["metadata"]["labels"] == plain | {"team": "rl"}


def test_labels_of_a_gang_stay_labels_beside_annotations() -> None:
    gang = ("optimizer.replicas=2", "optimizer.gang.queue=rl")
    plain = found(Values("a gang", sets=gang), "StatefulSet", "optimizer")["metadata"]
    noted = found(Values("a gang, noted", sets=(*gang, "optimizer.annotations.note=own")), "StatefulSet",
                  "optimizer")["metadata"]
    assert noted["labels"] == plain["labels"] and "rl" in plain["labels"].values()
    assert annotations({"metadata": noted}) == annotations({"metadata": plain}) | {"note": "own"}


def label_values(node: object) -> Iterator[object]:
    """Yield the values of all labels and label selectors below ``node``."""
    for child in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        yield from label_values(child)
    for key in ("labels", "matchLabels"):
        if isinstance(node, dict) and isinstance(node.get(key), dict):
            yield from node[key].values()


def test_a_pool_may_have_a_name_of_digits() -> None:
    """YAML reads a bare 4090 as a number, which Kubernetes refuses in labels."""
    values = Values("digits", sets=("inference.pools.4090.serves=past", "autoscaling.mode=hpa"))
    found_values = list(label_values(objects(values)))
    assert "4090" in found_values and all(isinstance(value, str) for value in found_values)


def test_no_pod_is_replaced_for_them() -> None:
    def templates(values: Values) -> dict[str, tuple[Object, Object]]:
        return {name: (meta, spec) for name, meta, spec in pods(objects(values)) if not name.startswith("Pod/")}

    assert templates(GLOBAL) == templates(Values("defaults"))


def test_only_strings_are_taken() -> None:
    assert "global" in refusal(Values("a label that is a list", sets=("global.labels.a={1}",)))
