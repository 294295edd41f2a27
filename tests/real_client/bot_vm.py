"""Lua interpreter of one team's bots, with the part of Valve's bot API that they use.

Sources of the API: Valve's Dota Bot Scripting page (18 September 2017), dotaservice 0.3.9, and the interpreter's limits
as Passerby/dota2-env measured them with the client of September 2026: Lua 5.1, no `io`, `os` and `jit`; `require` and
`loadfile` take paths below vscripts without an extension.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lupa.lua51 import LuaRuntime

FORBIDDEN = ("io", "os", "jit", "debug", "python")
# Functions that the client calls if a file of bots/ defines them.
HOOKS = ("Think", "ItemPurchaseThink", "AbilityLevelUpThink", "AbilityUsageThink", "ItemUsageThink",
         "CourierUsageThink", "BuybackUsageThink")
# Units, abilities and positions are tables. Python's objects stay out of Lua, where lupa 2.8 may mix them up.
PRELUDE = """
local method_names = {...}
local function object(fields) return setmetatable(fields, {__index = METHODS}) end
function Vector(x, y, z) return {x = x, y = y, z = z} end
function UNIT(handle) return handle and object({handle = handle}) end
METHODS = {}
for _, name in ipairs(method_names) do
    METHODS[name] = function(self, ...)
        local plain = {}
        for i = 1, select('#', ...) do
            local value = select(i, ...)
            if type(value) ~= 'table' then plain[i] = value
            elseif value.x then plain[i] = string.format('at %.9g %.9g %.9g', value.x, value.y, value.z)
            elseif value.ability then plain[i] = value.ability
            else plain[i] = 'unit ' .. value.handle end
        end
        if self.ability then return CALL(self.handle, name, self.ability, unpack(plain)) end
        return CALL(self.handle, name, unpack(plain))
    end
end
for _, name in ipairs({'GetAbilityInSlot', 'GetItemInSlot'}) do
    METHODS[name] = function(self, slot)
        local ability = CALL(self.handle, name, slot)
        return ability and object({handle = self.handle, ability = ability})
    end
end
function METHODS.GetName(self) return (self.ability:gsub('#.*', '')) end
function METHODS.GetNearbyTrees(self, radius) return {CALL(self.handle, 'GetNearbyTrees', radius)} end
function METHODS.IsNull() return false end
"""
METHODS = (
    "GetPlayerID", "GetUnitName", "IsAlive", "ToggleAutoCast", "Action_ClearActions", "Action_MoveToLocation",
    "Action_MoveDirectly", "Action_MoveToUnit", "Action_AttackMove", "Action_AttackUnit", "Action_UseAbility",
    "Action_UseAbilityOnEntity", "Action_UseAbilityOnLocation", "Action_UseAbilityOnTree", "Action_DropItem",
    "Action_PickUpRune", "Action_UseShrine", "ActionImmediate_LevelAbility", "ActionImmediate_PurchaseItem",
    "ActionImmediate_SellItem", "ActionImmediate_SwapItems", "ActionImmediate_Courier", "ActionImmediate_Buyback",
    "ActionImmediate_Glyph", "ActionImmediate_Chat")


class At(NamedTuple):
    """Position in world units."""

    x: float
    y: float
    z: float


class UnitHandle(NamedTuple):
    """Unit as an argument."""

    handle: int


class TeamApi(Protocol):
    """The game's answers to the bots of one team."""

    team: int  # 2 Radiant, 3 Dire

    def dota_time(self) -> float:
        """Return the seconds since the horn."""

    def exists(self, handle: int) -> bool:
        """Return whether the team may use a unit."""

    def call(self, handle: int, method: str, *arguments: Any) -> Any:
        """Execute a method of a unit; an ability's method has the ability first, a name up to a
        "#"."""

    def log(self, text: str) -> None:
        """Receive a printed line."""

    def loading(self) -> None:
        """Called whenever a bot loads a file: it does so again and again while it waits, and the game with it."""

    def couriers(self) -> Sequence[int]:
        """Return the handles of the team's couriers."""


class Hung(Exception):
    """A bot loads its action file again and again."""


class BotVm:
    """Bots of one team in one interpreter. ``vscripts`` is the folder above ``bots``.

    ``most_loads``: loads of a file within one think after which Hung is raised, so that a test ends.
    """

    def __init__(self, vscripts: Path, api: TeamApi, most_loads: int = 10_000_000) -> None:
        self._api = api
        self._vscripts = vscripts
        self._most_loads = most_loads
        self._loads = 0
        self._bot = 0
        self._modules: dict[str, Any] = {}
        self._thinks: dict[int, Callable[[], None]] = {}
        self._lua = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
        shared = self._lua.globals()
        self._loadstring = shared.loadstring
        shared["CALL"] = lambda handle, method, *given: api.call(int(handle), method, *map(_argument, given))
        self._loadstring(PRELUDE)(*METHODS)
        unit = shared["UNIT"]
        for name in FORBIDDEN:
            shared[name] = None
        shared["print"] = lambda *words: api.log("\t".join(map(str, words)))
        shared["require"] = self._require
        shared["loadfile"] = self._loadfile
        shared["GetTeam"] = lambda: api.team
        shared["GetBot"] = lambda: unit(self._bot)
        shared["DotaTime"] = lambda: api.dota_time()
        shared["GetBotByHandle"] = lambda handle: unit(int(handle)) if api.exists(int(handle)) else None
        shared["GetNumCouriers"] = lambda: len(api.couriers())
        shared["GetCourier"] = lambda index: unit(api.couriers()[int(index)])
        shared["PURCHASE_ITEM_SUCCESS"] = -1

    def define(self, **functions: Callable[..., Any]) -> None:
        """Add functions to the API. Lists that they return become arrays."""
        for name, function in functions.items():
            def answer(*given: Any, function: Callable[..., Any] = function) -> Any:
                result = function(*given)
                return self._lua.table(*result) if isinstance(result, list) else result
            self._lua.globals()[name] = answer

    def load(self, name: str) -> dict[str, Callable[[], None]]:
        """Run a file of bots/ as the client does and return the hooks that it defines, by name."""
        shared = self._lua.globals()
        self._chunk(f"bots/{name}")()
        defined = {hook: shared[hook] for hook in HOOKS if shared[hook] is not None}
        for hook in HOOKS:
            shared[hook] = None
        return defined

    def add_bot(self, handle: int) -> bool:
        """Load the bot of a hero; return whether it has a Think function."""
        self._bot = handle
        think = self.load("bot_generic").get("Think")
        if think is not None:
            self._thinks[handle] = think
        return think is not None

    def think(self, handle: int) -> None:
        """Run a hero's Think, if it has one; return when it does. Raises Hung."""
        if (think := self._thinks.get(handle)) is not None:
            self._bot, self._loads = handle, 0
            think()

    def _chunk(self, name: str) -> Any:
        chunk = self._loadstring((self._vscripts / f"{name}.lua").read_text(encoding="utf-8"), f"@{name}.lua")
        if isinstance(chunk, tuple):
            raise SyntaxError(chunk[1])
        return chunk

    def _require(self, name: str) -> Any:
        if name not in self._modules:
            self._modules[name] = self._chunk(name)()
        return self._modules[name]

    def _loadfile(self, name: str) -> Any:
        self._loads += 1
        if self._loads > self._most_loads:
            raise Hung(f"{name} was loaded {self._loads} times within one think")
        self._api.loading()
        try:
            return self._chunk(name)
        except (FileNotFoundError, SyntaxError) as error:
            return None, str(error)


def read_lua(path: Path) -> Any:
    """Return what a file returns to Lua, as Python's. A table with the keys 1, 2 and so on is a list, an empty one
    too."""
    return _plain(LuaRuntime(register_eval=False, register_builtins=False).execute(path.read_text(encoding="utf-8")))


def _plain(value: Any) -> Any:
    if not hasattr(value, "keys"):
        return value
    keys = list(value.keys())
    if set(keys) == set(range(1, len(keys) + 1)):  # the order of a table's keys is undefined
        return [_plain(value[key]) for key in sorted(keys)]
    return {key: _plain(value[key]) for key in keys}


def _argument(given: Any) -> Any:
    """Return an argument of a call as Python's: a position, a unit, a name or a number."""
    if isinstance(given, str) and given.startswith("at "):
        return At(*map(float, given.split()[1:]))
    if isinstance(given, str) and given.startswith("unit "):
        return UnitHandle(int(float(given[5:])))
    return given
