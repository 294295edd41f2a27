"""Environments that were stepped by several threads go on in a forked child, which starts threads of its own."""

import subprocess
import sys

import pytest

from tests.repository import ROOT

# Parent and child play the same steps from the same state, the child first. The timeout ends one that waits for threads
# of the parent.
PROGRAM = """
import os
import numpy as np
from tests.dota.small_games import MID, TEAM

{make}

play()  # the threads have started
ours, theirs = os.pipe()
child = os.fork()
if child == 0:
    os.write(theirs, play().encode())
    if os.fork() == 0:  # a child of the child has none of its threads either
        play()
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.close(theirs)
told = os.read(ours, 1000).decode()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert told == play(), told
"""
VEC_GAME = """
from dota.vec_game import Controller, VecGame

games = VecGame(MID, 8, seed=3, threads=4)
games.controllers[:] = Controller.RANDOM

def play():
    for _ in range(5):
        games.step()
    return " ".join(str(games.hash(i)) for i in range(8))
"""
VECTOR_ENV = """
from dota.gymnasium_vector_env import DotaVectorEnv

env = DotaVectorEnv(8, config=MID, opponent="random", threads=4)
_, infos = env.reset(seed=3)

def play():
    global infos
    for _ in range(5):
        seen, *_, infos = env.step(infos["action_mask"].argmax(-1))
    return repr(float(np.abs(seen).sum()))
"""
ENV = """
from dota.gymnasium_env import DotaEnv

env = DotaEnv(config=MID, opponent="random")
_, info = env.reset(seed=3)

def play():
    global info
    for _ in range(5):
        seen, *_, info = env.step(int(info["action_mask"].argmax()))
    return repr(float(np.abs(seen).sum()))
"""
PARALLEL_ENV = """
from dota.pettingzoo_env import DotaParallelEnv

env = DotaParallelEnv(config=TEAM)
seen, _ = env.reset(seed=3)

def play():
    global seen
    for _ in range(5):
        seen, *_ = env.step({agent: int(of["action_mask"].argmax()) for agent, of in seen.items()})
    return repr([sorted(of) for of in seen.values()]) + repr(env.agents)
"""


@pytest.mark.parametrize("make", [VEC_GAME, VECTOR_ENV, ENV, PARALLEL_ENV],
                         ids=["vec_game", "vector_env", "gymnasium", "pettingzoo"])
def test_forked_child_steps_the_same_games(make: str) -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM.format(make=make)], cwd=ROOT, capture_output=True, text=True,
                         timeout=60, encoding="utf-8")
    assert run.returncode == 0, run.stderr


def test_games_of_a_forked_child_are_freed() -> None:
    """The parent's threads cannot be joined in the child."""
    program = f"from tests.dota.small_games import MID\n{VEC_GAME}" + """
import os
play()
if (child := os.fork()) == 0:
    del games
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60,
                         encoding="utf-8")
    assert run.returncode == 0, run.stderr
