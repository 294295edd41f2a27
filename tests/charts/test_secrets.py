"""Tokens and passwords: generated once and kept, or given; never anywhere but in Secrets."""

import base64
import re

import yaml

from tests.charts.rendering import CHART, Values, containers, find, objects, pods, text

DEFAULTS = Values("defaults")
GIVEN = Values("given", sets=("secrets.tokens.existingSecret=our-tokens", "secrets.redis.existingSecret=our-redis"))


def test_values_are_long_random_and_different() -> None:
    drawn = [base64.b64decode(v).decode() for s in objects(DEFAULTS, "Secret") for v in s["data"].values()]
    assert len(drawn) == len(set(drawn)) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9]{48}", v) for v in drawn)


def test_no_secret_value_is_outside_a_secret(values: Values) -> None:
    rest = yaml.safe_dump([o for o in objects(values) if o["kind"] != "Secret"])
    for secret in objects(values, "Secret"):
        for value in secret["data"].values():
            assert value not in rest and base64.b64decode(value).decode() not in rest


def test_containers_read_them_from_secrets_only(values: Values) -> None:
    secret = re.compile(r"TOKEN|PASSWORD|AUTH|SECRET|KEY", re.I)
    for name, _, spec in pods(objects(values)):
        for c in containers(spec):
            for variable in c.get("env", []):
                if secret.search(variable["name"]):
                    assert "secretKeyRef" in variable.get("valueFrom", {}), (name, variable["name"])


def test_every_key_that_is_read_exists(values: Values) -> None:
    """In the Secrets that the chart makes; those that are given have to have the same keys."""
    made = {s["metadata"]["name"]: set(s["data"]) for s in objects(values, "Secret")}
    for name, _, spec in pods(objects(values)):
        for c in containers(spec):
            for variable in c.get("env", []):
                ref = variable.get("valueFrom", {}).get("secretKeyRef")
                if ref and ref["name"] in made:
                    assert ref["key"] in made[ref["name"]], (name, ref)
                elif ref:
                    assert ref["key"] in ("token", "viewer-token", "state-password", "params-password")


def test_a_given_secret_is_used_and_none_is_made() -> None:
    assert not objects(GIVEN, "Secret")
    rendered = text(GIVEN)
    assert "name: our-tokens" in rendered and "name: our-redis" in rendered
    assert "five-tokens" not in rendered.replace("our-tokens", "")


def test_secrets_outlive_the_release() -> None:
    for name in ("tokens", "redis"):
        assert find(DEFAULTS, "Secret", name)["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_an_upgrade_takes_what_the_cluster_has() -> None:
    """By construction: without an API server `lookup` finds nothing, so what is checked is that each value is the one
    found before anything random, and under the name and key that it is written to."""
    helper = (CHART / "templates/_secrets.tpl").read_text()
    kept = helper[helper.index('define "five.secrets.kept"'):]
    assert '(lookup "v1" "Secret" .root.Release.Namespace .secret).data' in kept
    assert re.search(r"get \$data \.key \| default \(randAlphaNum 48 \| b64enc\)", kept)
    for file in ("tokens", "redis"):
        template = (CHART / f"templates/secrets/{file}.yaml").read_text()
        assert "rand" not in template
        name = re.search(r'\$name := include "(five\.\w+)" \.', template)
        assert name and "name: {{ $name }}" in template
        for key, asked in re.findall(r'^  ([\w-]+): \{\{ include "five.secrets.kept" \(dict "root" \$ "secret" \$name '
                                     r'"key" "([\w-]+)"\) \}\}$', template, re.M):
            assert key == asked
        assert template.count("five.secrets.kept") == template[template.index("\ndata:"):].count("\n  ")


def test_no_secret_changes_a_pods_template() -> None:
    """Two renderings draw different secrets; if one were in a template, every upgrade would restart its pods."""
    again = Values("defaults, drawn again")
    first, second = ([o for o in objects(v) if o["kind"] != "Secret"] for v in (DEFAULTS, again))
    assert first == second
    assert find(DEFAULTS, "Secret", "tokens")["data"] != find(again, "Secret", "tokens")["data"]
