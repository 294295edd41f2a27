"""The code blocks of the environment's README run as they stand."""

import re
import subprocess
import sys
import tomllib

import pytest

from tests.repository import ROOT

README = (ROOT / "libs/dota/README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)
QUICKSTART_LINES = 20


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block):
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", block], cwd=ROOT / "libs", capture_output=True,
                         text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


def test_the_quickstart_is_short_and_first():
    assert README.index("## Quickstart") < README.index(BLOCKS[0])
    assert 5 < len(BLOCKS[0].splitlines()) <= QUICKSTART_LINES


def test_the_package_metadata_match_the_projects():
    """Checks the version, and that numpy is the only dependency."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = tomllib.loads((ROOT / "libs/dota/pyproject.toml").read_text())["project"]
    assert own["version"] == whole["version"]
    assert own["dependencies"] == [d for d in whole["dependencies"] if d.startswith("numpy")]
    assert own["entry-points"] == {"gymnasium.envs": {"Five": "dota.registration:register"}}
    assert whole["entry-points"] == own["entry-points"]


def test_every_id_and_argument_is_described():
    import inspect

    from dota import registration
    from dota.gymnasium_vector_env import DotaVectorEnv

    for name in registration.ENVIRONMENTS:
        assert f"`{registration.NAMESPACE}/{name}`" in README
    for name in inspect.signature(DotaVectorEnv).parameters:
        assert name in ("num_envs", "threads") or f"`{name}`" in README, name


def test_step_and_game_length_match_the_preset():
    from dota import presets
    from dota.team_games import steps_of

    game = presets.load("laptop-1v1").game
    numbers = re.search(r"(\d+) in `Five/Mid-v0`: ([\d.]+) s .*`env.unwrapped.max_steps` steps \(([\d,]+)\)",
                        README, re.S)
    assert numbers is not None
    assert int(numbers[1]) == game.frameskip
    assert float(numbers[2]) == round(game.timestep_seconds, 2)
    assert int(numbers[3].replace(",", "")) == steps_of(game)
