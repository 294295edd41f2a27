from pathlib import Path

import pytest

from tools.include_layers import main, violations


def write(core: Path, name: str, *includes: str) -> None:
    path = core / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'#include "{included}"\n' for included in includes))


def test_core_includes_lower_layers_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out


def test_includes_of_own_and_lower_layers_are_allowed(tmp_path: Path) -> None:
    write(tmp_path, "world/unit.hpp", "data/tables.hpp")
    write(tmp_path, "data/tables.hpp")
    write(tmp_path, "world/primitives/unit.cpp", "world/unit.hpp", "data/tables.hpp")
    assert list(violations(tmp_path)) == []


@pytest.mark.parametrize("included", ["rules/step.hpp", "missing.hpp"])
def test_higher_layer_or_missing_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], included: str
) -> None:
    write(tmp_path, "rules/step.hpp")
    write(tmp_path, "world/unit.cpp", included)
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f"world/unit.cpp: {included!r}")


def test_folder_outside_the_layers_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "net/actor.hpp")
    assert [line.split(":")[0] for line in violations(tmp_path)] == ["net/actor.hpp"]
