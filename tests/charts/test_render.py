"""Every values file lints, renders alike with helm 3 and 4, and is valid for every supported Kubernetes version."""

import functools
import hashlib
import json
from typing import Any

import jsonschema
import pytest
import referencing
import yaml
from kubernetes_validate import utils

from tests.charts.rendering import CHART, HELMS, Object, Values, objects, run, text, value_files

KUBERNETES = tuple(f"1.{minor}" for minor in range(28, 37))
# Kinds that other projects define; Kubernetes has no schema of them.
FOREIGN = {("monitoring.coreos.com/v1", "ServiceMonitor"), ("monitoring.coreos.com/v1", "PodMonitor"),
           ("monitoring.coreos.com/v1", "PrometheusRule"), ("cert-manager.io/v1", "Certificate")}
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "PriorityClass"}


@pytest.mark.parametrize("values", value_files(), ids=lambda v: v.name)
def test_lints(values: Values, helm: str) -> None:
    done = run(helm, "lint", CHART, "--strict", "--quiet", *values.arguments())
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_helms_render_the_same(values: Values) -> None:
    # They differ in the order of objects of one kind, and in what is drawn at random.
    new, old = ({(o["kind"], o["metadata"]["name"]): o for o in objects(values, helm=helm) if o["kind"] != "Secret"}
                for helm in HELMS)
    assert new.keys() == old.keys()
    for key, o in new.items():
        assert o == old[key], key


def test_names_are_unique_and_short(values: Values) -> None:
    seen = set()
    for o in objects(values):
        key = (o["apiVersion"].partition("/")[0], o["kind"], o["metadata"]["namespace"], o["metadata"]["name"])
        assert key not in seen, key
        seen.add(key)
        assert len(o["metadata"]["name"]) <= 63, key


def test_every_object_is_in_the_releases_namespace_and_labelled(values: Values) -> None:
    for o in objects(values):
        assert o["kind"] not in CLUSTER_WIDE, "the chart needs no rights on the whole cluster"
        assert o["metadata"]["namespace"] == "five-system"
        labels = o["metadata"]["labels"]
        for label in ("name", "instance", "version", "component", "part-of", "managed-by"):
            assert labels[f"app.kubernetes.io/{label}"], (o["kind"], o["metadata"]["name"], label)


def test_nothing_is_left_behind_by_templates(values: Values) -> None:
    rendered = text(values)
    for leftover in ("<no value>", "%!", "<nil>", "map["):
        assert leftover not in rendered, leftover
    assert "\t" not in rendered


@functools.cache
def definitions(version: str) -> Any:
    """Return the version's schema definitions with a cached index, which kubernetes-validate rebuilds for each object.
    """
    contents = utils.schema_contents(f"kubernetes-json-schema/{folder(version)}/_definitions.json", version)
    return referencing.Resource.from_contents(contents) @ referencing.Registry()


@functools.cache
def folder(version: str) -> str:
    """Return the folder of the strict schemas, which refuse unknown fields."""
    exact = [v for v in utils.all_versions() if utils.major_minor(v) == version]
    assert exact, f"kubernetes-validate has no schemas of {version}"
    return f"v{exact[-1]}-local-strict"


@functools.cache
def validator(version: str, api: str, kind: str) -> Any:
    """Return the validator of a kind. Raises FileNotFoundError when this Kubernetes version does not serve it."""
    group = api.partition("/")[0].partition(".")[0] + "-" + api.partition("/")[2] if "/" in api else api
    schema = utils.schema_contents(f"kubernetes-json-schema/{folder(version)}/{kind.lower()}-{group}.json", version)
    registry = referencing.Resource.from_contents(schema) @ definitions(version)
    return jsonschema.validators.Draft202012Validator(schema, registry=registry)


_valid: set[tuple[str, str]] = set()


def problems(o: Object, version: str) -> list[str]:
    """Return the validation errors of an object under a Kubernetes version; results are cached."""
    digest = hashlib.sha256(json.dumps(o, sort_keys=True, default=str).encode()).hexdigest()
    if (version, digest) in _valid:
        return []
    try:
        errors = list(validator(version, o["apiVersion"], o["kind"]).iter_errors(o))
    except FileNotFoundError:
        return [f"{o['apiVersion']} {o['kind']} is not served"]
    if not errors:
        _valid.add((version, digest))
    return [f"{o['kind']}/{o['metadata']['name']}: {'.'.join(map(str, e.path))}: {e.message}" for e in errors]


@pytest.mark.parametrize("version", KUBERNETES)
def test_is_valid_kubernetes(values: Values, version: str) -> None:
    own = [o for o in objects(values) if (o["apiVersion"], o["kind"]) not in FOREIGN]
    found = [p for o in own for p in problems(o, version)]
    assert not found, "\n".join(found)


def test_validation_finds_invalid_manifests() -> None:
    """The cached path must be as strict as the tool's own entry point."""
    good = next(o for o in objects(Values("defaults"), "Deployment"))
    for change in ({"replica": 1}, {"replicas": "one"}):
        bad = {**good, "spec": {**good["spec"], **change}}
        assert problems(bad, "1.30")
        with pytest.raises(utils.ValidationError):
            utils.validate(bad, "1.30", strict=True)
    assert utils.validate(good, "1.30", strict=True) == "1.30"


def test_the_chart_says_which_kubernetes_it_needs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["kubeVersion"].startswith(f">={KUBERNETES[0]}.")
