"""Generator of what the Helm chart needs to know of a run's configuration.

    python -m tools.chart_facts

A chart cannot load a preset. charts/files/presets.yaml holds the sizes by which it requests memory and refuses what a
preset is not made for. Nor can it validate ``run.overrides``: charts/values.schema.json holds their schema, and
charts/files/replaced-keys.yaml the messages for keys of earlier versions. Models are built without their tensors'
contents, which takes a second or two.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import yaml

from dota.spaces import Layout
from five.agent.model.policy import Policy
from five.capacity.cluster_sizes import version_seconds
from five.run.config import RunConfig
from five.run.load import load, presets
from tools.chart_schema import replaced_keys, with_overrides

CHART = Path(__file__).resolve().parents[1] / "charts"
FACTS, REPLACED, SCHEMA = "files/presets.yaml", "files/replaced-keys.yaml", "values.schema.json"
ABOUT = "# Written by `python -m tools.chart_facts` from the presets; a test checks it. Sizes in bytes.\n"
ABOUT_REPLACED = "# Keys that run.overrides refuses. `python -m tools.chart_facts` writes them; a test checks it.\n"
# A checkpoint holds, besides the policy, Adam's two moments and the clip's second moments, float32 like the parameters.
MOMENTS = 3
ADAM_STEP_BYTES = 4  # a count for each parameter tensor


def facts(config: RunConfig) -> dict[str, int | str]:
    """Return a preset's sizes: optimizers, heroes, bytes of a version and of a checkpoint, and how many are stored."""
    with torch.device("meta"):
        policy = Policy(Layout(config.game), config.model)
    parameters = list(policy.parameters())
    tensors = policy.state_dict()
    checkpoint = sum(t.nbytes for t in tensors.values())
    checkpoint += sum(MOMENTS * p.numel() * 4 + ADAM_STEP_BYTES for p in parameters)
    return {
        "max_optimizers": config.services.optimizer.max_optimizers,
        "heroes_per_team": config.game.heroes_per_team,
        # float32, whatever the preset says: a values file may set store.publish_dtype, and memory must suffice for it.
        "parameter_bytes": sum(t.nbytes for t in tensors.values()),
        "publish_dtype": config.store.publish_dtype,
        "checkpoint_bytes": checkpoint,
        "keep_versions": config.store.keep_versions,
        "versions_in_grace": math.ceil(config.store.grace_seconds / version_seconds(config)),
        "checkpoints_kept": config.services.optimizer.checkpoints_kept,
    }


def text() -> str:
    """Return the contents of files/presets.yaml."""
    return ABOUT + yaml.safe_dump({name: facts(load(name)) for name in sorted(presets())}, sort_keys=False)


def replaced() -> str:
    """Return the contents of files/replaced-keys.yaml."""
    return ABOUT_REPLACED + yaml.safe_dump(replaced_keys(), width=200)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the three files, or report with ``--check`` which are outdated. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.chart_facts", description=__doc__)
    parser.add_argument("--chart", type=Path, default=CHART, help="the chart's folder (default: charts/)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is outdated")
    arguments = parser.parse_args(argv)
    schema = arguments.chart / SCHEMA
    if not schema.is_file():
        parser.error(f"there is no {schema}: --chart must be the folder of the chart; only run.overrides of its schema "
                     "is generated")
    status = 0
    for path, new in ((arguments.chart / FACTS, text()), (arguments.chart / REPLACED, replaced()),
                      (schema, with_overrides(schema.read_text(encoding="utf-8")))):
        if path.is_file() and path.read_text(encoding="utf-8") == new:
            continue
        if arguments.check:
            print(f"{path} is outdated: run python -m tools.chart_facts", file=sys.stderr)
            status = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
