"""The examples: PPO runs at a tiny size, and what other trainers need is short (they run in `make test-env`)."""

import ast
import importlib.util
import sys

import pytest

from tests.repository import ROOT

FOLDER = ROOT / "examples"
MOST_LINES = 20


def test_ppo_trains(monkeypatch):
    import torch

    spec = importlib.util.spec_from_file_location("ppo_example", FOLDER / "ppo.py")
    ppo = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, ppo)
    spec.loader.exec_module(ppo)
    threads = torch.get_num_threads()
    before, after = ppo.train(1, rows=4, steps=16, updates=2, games=2, seed=1,
                              game={"max_game_seconds": 3, "start_seconds": -1})
    assert torch.get_num_threads() == threads
    assert before == after == 0  # nobody gets there within three seconds


@pytest.mark.parametrize(("name", "adapter"), [("train_pufferlib.py", "Games"), ("train_sample_factory.py", "make")])
def test_an_adapter_is_short(name, adapter):
    tree = ast.parse((FOLDER / name).read_text())
    found = next(node for node in tree.body if getattr(node, "name", "") == adapter)
    written = (FOLDER / name).read_text().splitlines()[found.lineno - 1 : found.end_lineno]
    lines = [line for line in written if line.strip() and '"""' not in line]
    assert 1 < len(lines) <= MOST_LINES, len(lines)


def test_each_example_says_how_it_is_run():
    for path in FOLDER.glob("*.py"):
        assert f"python examples/{path.name}" in (ast.get_docstring(ast.parse(path.read_text())) or "")
