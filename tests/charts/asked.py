"""Total resource requests of a rendering, and the size table that NOTES.txt prints.

usage: python -m tests.charts.asked          update charts/files/sizes.txt; needs helm
"""

from typing import NamedTuple

from tests.charts.rendering import CHART, Object, Values, containers, objects, value_files

UNITS = {"": 1, "m": 0.001, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


class Asked(NamedTuple):
    """Resource requests: CPU in cores, memory in GiB, GPUs."""

    cpu: float
    memory: float
    gpus: int


def quantity(text: object) -> float:
    """Parse a Kubernetes quantity."""
    word = str(text)
    unit = word.lstrip("0123456789.")
    return float(word.removesuffix(unit)) * UNITS[unit]


def asked(values: Values) -> Asked:
    """Return the requests of all pods; an autoscaled Deployment counts with one pod."""
    cpu = memory = gpus = 0.0
    for o in objects(values):
        if o["kind"] not in ("Deployment", "StatefulSet"):
            continue
        spec: Object = o["spec"]
        for c in containers(spec["template"]["spec"]):
            pods = spec.get("replicas", 1)
            cpu += pods * quantity(c["resources"]["requests"]["cpu"])
            memory += pods * quantity(c["resources"]["requests"]["memory"])
            gpus += pods * sum(int(n) for name, n in c["resources"]["limits"].items() if "/" in name)
    return Asked(round(cpu, 3), memory / (1 << 30), int(gpus))


FILE = CHART / "files/sizes.txt"


def sizes() -> dict[str, Asked]:
    """Return the requests by delivered values file, smallest first; the key of the defaults is ''."""
    found = {v.name if v.files else "": asked(v) for v in value_files() if "/" not in v.name}
    return dict(sorted(found.items(), key=lambda item: (item[1].cpu, item[0])))


def text() -> str:
    """Return one line for each values file, as NOTES.txt prints them."""
    rows = []
    for name, one in sizes().items():
        file, gpus = f"-f charts/{name}" if name else "no values file", f", {one.gpus} GPUs" if one.gpus else ""
        rows.append(f"{file:33}{one.cpu:7.1f} cores, {one.memory:.0f} GiB{gpus}")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
