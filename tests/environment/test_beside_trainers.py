"""The environment's wheel alone, and next to trainers with their pinned packages (`make test-env`)."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.repository import ROOT

pytestmark = pytest.mark.environment
PEERS = ROOT / "build/peers"
UPDATES = 100
SMALL = "game={'max_game_seconds': 20, 'start_seconds': -2}"


def python(peer: str, *arguments: str, folder: Path, timeout: float = 300) -> str:
    """Return the output of a peer's Python, started in an empty folder so that nothing is imported from the tree."""
    program = PEERS / peer / "bin/python"
    assert program.exists(), f"{program} is not there: `make test-env` makes it"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([str(program), "-W", "ignore", *arguments], cwd=folder, capture_output=True, text=True,
                         timeout=timeout, env=environment | {"WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, f"{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout


def test_the_game_needs_only_numpy(tmp_path):
    listed = json.loads(python("alone", "-m", "pip", "list", "--format", "json", folder=tmp_path))
    assert {p["name"] for p in listed} - {"pip", "setuptools"} == {"five-dota", "numpy"}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "libs/dota/README.md").read_text(), re.S)
    alone = [block for block in blocks if "gymnasium" not in block]
    assert alone
    for block in alone:
        assert python("alone", "-c", block, folder=tmp_path).strip()


def test_the_wheel_installs_one_package(tmp_path):
    files = python("alone", "-c", "import importlib.metadata as m; print(*m.files('five-dota'), sep='\\n')",
                   folder=tmp_path).split()
    assert {name.split("/")[0] for name in files if ".dist-info" not in name} == {"dota"}
    assert not [name for name in files if name.endswith((".cpp", ".hpp", "CMakeLists.txt", "pyproject.toml"))]


@pytest.mark.parametrize("peer", ["sample-factory", "pufferlib"])
def test_gymnasiums_check_at_the_version_that_a_peer_pins(peer, tmp_path):
    said = python(peer, "-c", f"""
import gymnasium, numpy as np
from gymnasium.utils.env_checker import check_env
for observation in ("flat", "masked", "dict"):
    for actions in ("discrete", "factored", "native"):
        check_env(gymnasium.make("Five/Mid-v0", observation=observation, actions=actions, {SMALL}).unwrapped,
                  skip_render_check=True)
from dota.gymnasium_vector_env import DotaVectorEnv
envs = DotaVectorEnv(4, opponent="self", {SMALL})
_, infos = envs.reset(seed=np.int64(1))
ended = 0
for _ in range(170):
    _, _, terminated, truncated, infos = envs.step(infos["action_mask"].argmax(-1))
    ended += int((terminated | truncated).sum())
    if truncated.any():
        assert infos["_final_info"].all() and infos["final_info"][0]["winner"] == 3
        assert (infos["game_time"] == -2).all()
print(gymnasium.__version__, ended)
""", folder=tmp_path)
    version, ended = said.split()[-2:]
    assert version.startswith("0.") and ended == "4"


def test_pettingzoos_check_at_the_version_that_pufferlib_pins(tmp_path):
    said = python("pufferlib", "-c", f"""
from pettingzoo.test import parallel_api_test, parallel_seed_test
from dota.pettingzoo_env import DotaParallelEnv
parallel_api_test(DotaParallelEnv({SMALL}), num_cycles=100)
parallel_seed_test(lambda: DotaParallelEnv({SMALL}))
""", folder=tmp_path)
    assert "Passed" in said


def test_sample_factory_trains(tmp_path):
    """A hundred batches of 16 samples are a hundred training steps."""
    said = python("sample-factory", str(ROOT / "examples/train_sample_factory.py"), "--env=Five/Mid-v0",
                  "--device=cpu", "--experiment=five", f"--train_dir={tmp_path}", "--serial_mode=True",
                  "--async_rl=False", "--num_workers=1", "--num_envs_per_worker=2", "--worker_num_splits=1",
                  "--rollout=8", "--recurrence=1", "--use_rnn=False", "--batch_size=16", "--num_epochs=1",
                  f"--train_for_env_steps={16 * UPDATES}", folder=tmp_path, timeout=600)
    kept = sorted((tmp_path / "five/checkpoint_p0").glob("checkpoint_*.pth"))
    assert kept, said[-2000:]
    trained = int(kept[-1].name.split("_")[1])  # training steps, then samples
    assert trained >= UPDATES


def test_pufferlib_trains(tmp_path):
    said = python("pufferlib", str(ROOT / "examples/train_pufferlib.py"), "--train.device", "cpu",
                  "--train.optimizer", "adam", "--train.learning-rate", "0.001", "--train.bptt-horizon", "8",
                  folder=tmp_path, timeout=600)
    assert f"{UPDATES} updates" in said


@pytest.mark.parametrize("peer", ["sample-factory", "pufferlib"])
def test_trainers_of_the_comparison_report_their_speed(peer, tmp_path):
    output = tmp_path / "speed.json"
    python(peer, str(ROOT / f"benchmarks/trainers/train_{peer.replace('-', '_')}.py"), str(output), "1",
           folder=tmp_path, timeout=300)
    found = json.loads(output.read_text())
    assert found["hero_steps_per_second"] > 0 and 0 < found["cores"] < (os.cpu_count() or 1) + 1
