"""Python modules that rendered pods run, by the image that they run in."""

import re
from collections import defaultdict
from collections.abc import Iterator

from tests.charts.rendering import Object, Values, containers, objects, pods

_MODULE = re.compile(r"(?<!\S)-m[\s\"',]+([A-Za-z_][\w.]*)")


def modules_by_image(values: Values) -> dict[str, set[str]]:
    """Return {image name without registry and tag: modules run by `python -m`} of every rendered pod."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, _, spec in pods(objects(values)):
        for container in containers(spec):
            image = container["image"].rsplit("/", 1)[-1].split("@")[0].split(":")[0]
            for command in _commands(container):
                found[image].update(_MODULE.findall(command))
    return dict(found)


def _commands(container: Object) -> Iterator[str]:
    """Yield each command line of a container: its own, and those of its probes and lifecycle hooks."""
    yield " ".join([*container.get("command", []), *container.get("args", [])])
    probes = [container.get(name, {}) for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    for action in [*probes, *container.get("lifecycle", {}).values()]:
        yield " ".join(action.get("exec", {}).get("command", []))
