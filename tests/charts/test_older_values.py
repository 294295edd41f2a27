"""Values of an older chart, which `helm upgrade --reuse-values` passes, are refused with what to do instead."""

import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.charts.rendering import CHART, NAMESPACE, RELEASE, ROOT, Values, refusal, run
from tests.charts.values_table import KEYS, keys

OLDER = ROOT / "tests/charts/fixtures/five-0.1.0.tgz"


def rendered_with_defaults(helm: str, folder: Path, defaults: str) -> tuple[int, str]:
    """Render the chart with other defaults, as --reuse-values does. Return the exit status and the error output."""
    copy = Path(shutil.copytree(CHART, folder / "charts"))
    (copy / "values.yaml").write_text(defaults)
    done = run(helm, "template", RELEASE, copy, "--namespace", NAMESPACE)
    return done.returncode, done.stderr


def test_reused_values_of_an_older_chart_are_refused(helm: str, tmp_path: Path) -> None:
    with tarfile.open(OLDER) as chart:
        chart.extract("five/values.yaml", tmp_path, filter="data")
    status, error = rendered_with_defaults(helm, tmp_path, (tmp_path / "five/values.yaml").read_text())
    assert status != 0 and "--reset-then-reuse-values" in error
    assert "nil pointer" not in error and "additional propert" not in error.lower()


@pytest.mark.parametrize("missing", ["play", "optimizer.gang", "redis.state.maxclients", "rollout.extraVolumes"])
def test_one_missing_key_is_named(helm: str, tmp_path: Path, missing: str) -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    *sections, key = missing.split(".")
    at = defaults
    for section in sections:
        at = at[section]
    del at[key]
    status, error = rendered_with_defaults(helm, tmp_path, yaml.safe_dump(defaults))
    assert status != 0 and f": {missing}" in error and "--reset-then-reuse-values" in error


def test_current_values_are_accepted(helm: str, tmp_path: Path) -> None:
    assert rendered_with_defaults(helm, tmp_path, (CHART / "values.yaml").read_text())[0] == 0


def test_null_counts_as_missing() -> None:
    assert "A key set to null also counts" in refusal(Values("null", sets=("rollout.extraVolumes=null",)))


def test_the_single_redis_secret_of_the_older_chart_is_refused() -> None:
    error = refusal(Values("older Secrets", sets=("secrets.redis.existingSecret=ours",
                                                  "secrets.service.existingSecret=ours")))
    assert "secrets.redis.existingSecret: a value of chart 0.1.0" in error
    assert "secrets.service.existingSecret: a value of chart 0.1.0" in error


def test_the_list_of_keys_is_current() -> None:
    assert KEYS.read_text() == keys(), "python tests/charts/values_table.py"
