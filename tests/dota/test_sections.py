"""The configuration without pydantic behaves as the one with it."""

import json
import subprocess
import sys

import pytest

from dota import config, presets
from dota.config import GameConfig, RewardConfig
from tests.repository import ROOT

WITHOUT = "import sys; sys.modules['pydantic'] = None\nimport json\nfrom dota.config import *\n"


def alone(code: str) -> str:
    """Return the output of Python without pydantic."""
    ran = subprocess.run([sys.executable, "-c", WITHOUT + code], cwd=ROOT / "libs", capture_output=True, text=True,
                         timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


GOOD = [
    {}, {"mode": "1v1_mid", "heroes_per_team": 1, "hero_pool": ["nevermore"], "max_game_seconds": 10},
    {"observation": {"wards": 3, "omit": ["minimap"]}, "scripted_actions": ["glyph"]},
    {"randomisation": {"stats": 0.5, "roshan": True}, "consumables": {"tango": 0}},
    {"randomisation": {"armor": 2, "hp_regen": None}}, {"hero_pool": ["lich", "finals_2019"]}, {"frameskip": 8.0},
]
BAD = [
    {"mode": "2v2"}, {"heroes_per_team": 0}, {"heroes_per_team": 6}, {"hero_pool": []}, {"hero_pool": ["axe", "axe"]},
    {"hero_pool": ["axe"]}, {"heroes": 3}, {"observation": {"wards": -1}}, {"observation": {"ward": 1}},
    {"max_game_seconds": 0}, {"neutrals": "perhaps"}, {"observation": 3}, {"heroes_per_team": 1.5},
    {"scripted_actions": ["walk"]}, {"hero_pool": "axe"}, {"max_game_seconds": 8001}, {"randomisation": {"armor": 11}},
    {"randomisation": {"lane_until_seconds": None}},
]


def test_the_same_values_and_defaults():
    made = json.loads(alone(f"print(json.dumps([GameConfig.model_validate(v).model_dump(mode='json') "
                            f"for v in {GOOD!r}]))"))
    assert made == [GameConfig.model_validate(v).model_dump(mode="json") for v in GOOD]
    weights = {"preset": "gist", "weights": {"gold": 1}}
    assert json.loads(alone(f"print(RewardConfig(**{weights!r}).model_dump_json())")) == json.loads(
        RewardConfig.model_validate(weights).model_dump_json())


def test_numpy_scalars_become_python_values():
    code = """
import numpy as np
made = GameConfig(frameskip=np.int64(8), heroes_per_team=np.int64(1), neutrals=np.bool_(False),
                  max_game_seconds=np.float32(9))
print(made.model_dump_json(exclude={"hero_pool", "observation", "consumables", "randomisation"}))
"""
    assert json.loads(alone(code)).items() >= {
        "frameskip": 8, "heroes_per_team": 1, "neutrals": False, "max_game_seconds": 9.0}.items()


def test_the_same_mistakes_are_refused():
    said = alone(f"""
for values in {BAD!r}:
    try:
        print("taken", GameConfig.model_validate(values))
    except ValueError as error:
        print("refused", error)
""").splitlines()
    assert [line.split()[0] for line in said] == ["refused"] * len(BAD), said
    assert "GameConfig.observation.wards must be >= 0, not -1" in said[7]
    for values in BAD:
        with pytest.raises(ValueError):
            GameConfig.model_validate(values)


def test_every_field_has_the_same_bounds_and_meaning():
    """Read from both: name, default, description."""
    sections = [name for name, kind in vars(config).items() if isinstance(kind, type) and name.endswith("Config")]
    told = json.loads(alone(f"print(json.dumps({{name: {{f: x.description for f, x in globals()[name]"
                            f".model_fields.items()}} for name in {sections!r}}}))"))
    assert told == {name: {f: x.description for f, x in getattr(config, name).model_fields.items()}
                    for name in sections}


def test_a_section_is_a_value():
    out = alone("""
a, b = GameConfig(), GameConfig(neutrals=False)
print(a == GameConfig(), a == b, hash(a) == hash(GameConfig()), b.model_copy(update={"neutrals": True}) == a)
import pickle, copy
print(pickle.loads(pickle.dumps(a)) == copy.deepcopy(a) == a)
try:
    a.neutrals = False
except ValueError as error:
    print(error)
""")
    assert out.splitlines() == ["True False True True", "True",
                                "GameConfig.neutrals cannot be changed: make another with model_copy"]


def test_every_preset_loads_without_pydantic():
    code = """
from dota import presets
print(json.dumps({name: presets.load(name).game.model_dump("json") for name in presets.names()}))
"""
    assert json.loads(alone(code)) == {name: presets.load(name).game.model_dump(mode="json")
                                       for name in presets.names()}


def test_the_game_runs_without_pydantic():
    assert alone("import dota; game = dota.Game(GameConfig(start_seconds=-1)); game.step(); print(game.time < 0)"
                 ).strip() == "True"
