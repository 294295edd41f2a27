"""The chart's README: its values table is current, and its commands name existing files."""

import re

from tests.charts.rendering import CHART, ROOT, Values, objects
from tests.charts.values_table import described, with_table

README = CHART / "README.md"


def test_the_table_is_current() -> None:
    text = README.read_text()
    assert text == with_table(text), "python tests/charts/values_table.py"


def test_comments_of_several_lines_and_nested_keys() -> None:
    text = "a:\n  # -- First\n  # and more.\n  b: 1\n  # Not a description.\n  c: 2\nd:\n  # -- Other.\n  b: []\n"
    assert described(text) == {"a.b": "First and more.", "d.b": "Other."}


def test_names_in_its_commands_exist() -> None:
    text = README.read_text()
    for path in re.findall(r"charts/[\w./-]+\.(?:yaml|json)", text):
        assert (ROOT / path).is_file(), path
    names = {o["metadata"]["name"] for o in objects(Values("defaults"))}
    for name in re.findall(r"\b(?:secret|deployment|statefulset|service)s?/(five-[\w-]+)", text):
        assert name in names, name


def test_it_lists_the_names_of_a_certificate_for_grpc() -> None:
    values = Values("certificate", sets=("tls.grpc.enabled=true", "tls.certManager.issuerRef.name=ours",
                                         "dotaEnv.placement=deployment", "play.enabled=true", "evaluator.enabled=true"))
    (certificate,) = (o for o in objects(values, "Certificate") if o["metadata"]["name"].endswith("-grpc"))
    spec = certificate["spec"]
    section = README.read_text().partition("\n## TLS\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([^`]+)`", section))
    services = {name for name in spec["dnsNames"] if "." not in name} - {"five-optimizer"}  # by pod alone
    assert services | set(spec["ipAddresses"]) | {"*.five-optimizer.five.svc"} <= named
