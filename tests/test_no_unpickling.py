"""Nothing that is read from a network, a store or a file is ever unpickled, and no YAML builds objects."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(p for folder in ("libs", "services", "protos") for p in (ROOT / folder).rglob("*.py"))

MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle",
           "torch.package"}
# Calls by the end of their dotted name; those that unpickle whatever their arguments are.
CALLS = {"torch.load", "torch.save", "torch.jit.load", "numpy.load", "np.load", "numpy.save", "np.save", "yaml.load",
         "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.UnsafeLoader", "yaml.Loader",
         "pandas.read_pickle",
         "dist.all_gather_object", "dist.broadcast_object_list", "dist.gather_object",
         "dist.scatter_object_list"}
SAFE_ONLY_WITH = {"numpy.load": "allow_pickle", "np.load": "allow_pickle", "numpy.save": "allow_pickle",
                  "np.save": "allow_pickle", "torch.load": "weights_only"}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def safe(call: ast.Call, name: str) -> bool:
    """NumPy's own loader with pickling off. torch's weights_only still reads pickles: it is not let off."""
    keyword = SAFE_ONLY_WITH.get(name)
    return keyword == "allow_pickle" and any(
        k.arg == keyword and isinstance(k.value, ast.Constant) and k.value.value is False for k in call.keywords)


def offences(source: str) -> list[str]:
    """Return the forbidden calls in a module's source, with line numbers."""
    tree = ast.parse(source)
    allowed = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and safe(n, dotted(n.func))}
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names if a.name in MODULES or a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{a.name}" for a in node.names
                     if node.module.split(".")[0] in MODULES or node.module in MODULES
                     or f"{node.module}.{a.name}" in CALLS | MODULES]
        elif isinstance(node, ast.Attribute) and id(node) not in allowed and dotted(node) in CALLS:
            names = [dotted(node)]
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                names = ["allow_pickle"]
        found += [f"line {getattr(node, 'lineno', '?')}: {name}" for name in names]
    return found


def test_nothing_is_unpickled() -> None:
    assert len(FILES) > 150
    found = {str(path.relative_to(ROOT)): offences(path.read_text()) for path in FILES}
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize("source", [
    "import pickle", "import torch.package", "from pickle import loads", "from torch import load", "import dill as d",
    "torch.load(path)", "torch.load(path, weights_only=True)", "np.load(path)", "np.load(path, allow_pickle=True)",
    "f(x, allow_pickle=flag)", "yaml.load(text, Loader=yaml.Loader)", "from yaml import unsafe_load",
    "read = torch.load", "dist.broadcast_object_list(x)",
])
def test_the_rule_catches(source: str) -> None:
    assert offences(source)


@pytest.mark.parametrize("source", [
    "np.load(path, allow_pickle=False)", "yaml.safe_load(text)", "json.loads(text)",
    "from safetensors import safe_open",
    "self.load(version)",
])
def test_the_rule_lets_pass(source: str) -> None:
    assert not offences(source)
