"""What the Helm chart has to know of the presets: ``python -m cli.chartfacts`` writes charts/files/presets.yaml.

A chart cannot load a preset, and must size memory and refuse what a preset is not made for. Models are built without
their tensors' contents, so this takes a second or two.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
import yaml

from dota.spaces import Layout
from five.model.policy import Policy
from run.config import RunConfig
from run.load import load, presets

FILE = Path(__file__).resolve().parents[2] / "charts" / "files" / "presets.yaml"
ABOUT = "# Written by `python -m cli.chartfacts` from the presets; a test checks that it is current. Sizes in bytes.\n"
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
    """The file's contents."""
    return ABOUT + yaml.safe_dump({name: facts(load(name)) for name in sorted(presets())}, sort_keys=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the file, or with ``--check`` says whether it is current. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cli.chartfacts", description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE, help="the file (default: the chart's)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not current")
    arguments = parser.parse_args(argv)
    new = text()
    if not arguments.check:
        arguments.out.write_text(new)
        return 0
    if arguments.out.is_file() and arguments.out.read_text() == new:
        return 0
    print(f"{arguments.out} is not current: run python -m cli.chartfacts", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
