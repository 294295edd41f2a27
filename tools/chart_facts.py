"""What the Helm chart has to know of a run's configuration: ``python -m tools.chart_facts`` writes it into the chart.

A chart cannot load a preset, and must size memory and refuse what a preset is not made for: charts/files/presets.yaml.
Nor can it ask RunConfig whether ``run.overrides`` are valid: their part of charts/values.schema.json. Models are built
without their tensors' contents, so this takes a second or two.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import yaml

from dota.spaces import Layout
from five.agent.model.policy import Policy
from five.run.config import RunConfig
from five.run.load import load, presets
from tools.chart_schema import with_overrides

CHART = Path(__file__).resolve().parents[1] / "charts"
FACTS, SCHEMA = "files/presets.yaml", "values.schema.json"
ABOUT = "# Written by `python -m tools.chart_facts` from the presets; a test checks it. Sizes in bytes.\n"
# In a checkpoint beside the policy: Adam's two moments and the clip's second moments, float32 like the parameters.
MOMENTS = 3
ADAM_STEP_BYTES = 4  # a count for each parameter tensor


def facts(config: RunConfig) -> dict[str, int]:
    """Of one preset: the most optimizers, heroes of a team, the most bytes of a version's tensors, those of a
    checkpoint's, how many of each are kept."""
    with torch.device("meta"):
        policy = Policy(Layout(config.game), config.model)
    parameters = list(policy.parameters())
    tensors = policy.state_dict()
    checkpoint = sum(t.nbytes for t in tensors.values())
    checkpoint += sum(MOMENTS * p.numel() * 4 + ADAM_STEP_BYTES for p in parameters)
    return {
        "max_optimizers": config.services.optimizer.max_optimizers,
        "heroes_per_team": config.game.heroes_per_team,
        # In float32, whatever the preset says: a values file may set store.publish_dtype, and memory must do for it.
        "parameter_bytes": sum(t.nbytes for t in tensors.values()),
        "checkpoint_bytes": checkpoint,
        "keep_versions": config.store.keep_versions,
        "checkpoints_kept": config.services.optimizer.checkpoints_kept,
    }


def text() -> str:
    """The contents of files/presets.yaml."""
    return ABOUT + yaml.safe_dump({name: facts(load(name)) for name in sorted(presets())}, sort_keys=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes both files, or with ``--check`` says which is not current. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.chart_facts", description=__doc__)
    parser.add_argument("--chart", type=Path, default=CHART, help="the chart's folder (default: charts/)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is not current")
    arguments = parser.parse_args(argv)
    schema = arguments.chart / SCHEMA
    if not schema.is_file():
        parser.error(f"there is no {schema}: --chart takes the folder of the chart, whose schema is written by hand "
                     "but for run.overrides")
    status = 0
    for path, new in ((arguments.chart / FACTS, text()), (schema, with_overrides(schema.read_text()))):
        if path.is_file() and path.read_text() == new:
            continue
        if arguments.check:
            print(f"{path} is not current: run python -m tools.chart_facts", file=sys.stderr)
            status = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new)
    return status


if __name__ == "__main__":
    sys.exit(main())
