"""The tests need the extra ``sweep``, which the extra ``dev`` contains."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("optuna") else ["test_*.py"]
