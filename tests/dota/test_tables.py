"""Check that the compiled core was built from these sources."""

from types import SimpleNamespace

import pytest

from dota import _core
from dota.rule_changes import REVISION
from dota.tables import INTERFACE, require_current


@pytest.mark.parametrize("stale", [{"RULES_REVISION": REVISION - 1}, {"INTERFACE": INTERFACE - 1}])
def test_a_core_of_other_sources_is_refused(stale: dict[str, int]) -> None:
    numbers = {"INTERFACE": _core.INTERFACE, "RULES_REVISION": _core.RULES_REVISION}
    require_current(SimpleNamespace(__file__="core.so", **numbers))
    with pytest.raises(ImportError, match=r"core\.so.*make build"):
        require_current(SimpleNamespace(__file__="core.so", **numbers | stale))


def test_a_core_from_before_revisions_is_refused() -> None:
    with pytest.raises(ImportError, match="rules revision None"):
        require_current(SimpleNamespace(__file__="core.so", INTERFACE=INTERFACE))
