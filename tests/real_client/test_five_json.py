"""The bots' JSON decoder reads what the launcher writes, and refuses what is no JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.lua51 import LuaError, LuaRuntime

from five.real_client.action_files import write_lua
from five.real_client.bot_folder import LUA

KEYS = st.text(min_size=1, max_size=6)
VALUES = st.recursive(
    st.booleans() | st.integers(-2**31, 2**32) | st.floats(-1e9, 1e9).map(lambda x: round(x, 3)) | st.text(max_size=12)
    .filter(lambda text: all(ord(c) < 0xD800 or 0xE000 <= ord(c) < 0x10000 for c in text)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS.filter(str.isalnum).filter(str.isascii), inner,
                                                                max_size=4), max_leaves=12)


@pytest.fixture(scope="module")
def lua() -> LuaRuntime:
    runtime = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
    runtime.globals()["json"] = runtime.execute((LUA / "five_json.lua").read_text())
    return runtime


def plain(value: Any) -> Any:
    """Return a Lua value as Python's; an empty table is an empty list."""
    if not hasattr(value, "keys"):
        return value
    keys = list(value.keys())
    if keys == list(range(1, len(keys) + 1)):
        return [plain(value[key]) for key in keys]
    return {key: plain(value[key]) for key in keys}


def with_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_empty_lists(inner) for key, inner in value.items()} or []
    return [with_empty_lists(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None)
@given(content=st.dictionaries(KEYS.filter(str.isalpha).filter(str.isascii), VALUES, max_size=4))
def test_written_content_is_read_back(lua: LuaRuntime, tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.mktemp("lua") / "x.lua"
    write_lua(path, content)
    lua.globals()["text"] = lua.execute(path.read_text())
    assert plain(lua.eval("json.decode(text)")) == with_empty_lists(content)


@pytest.mark.parametrize("text", ["", "{", "[1", "[1,]", "{\"a\" 1}", "{a:1}", "\"x", "\"\\q\"", "\"\\u12\"", "tru",
                                  "1e", "--1", "1 2", "[" * 40 + "]" * 40, "{\"a\":}", "nul"])
def test_other_text_is_refused(lua: LuaRuntime, text: str) -> None:
    lua.globals()["text"] = text
    with pytest.raises(LuaError, match="invalid JSON at byte"):
        lua.execute("json.decode(text)")


def test_null_is_nil(lua: LuaRuntime) -> None:
    lua.globals()["text"] = json.dumps({"a": None, "b": 1})
    assert plain(lua.eval("json.decode(text)")) == {"b": 1}
