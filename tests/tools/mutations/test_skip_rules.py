"""Code whose mutants are skipped."""

import pytest

from tools.mutations.skip_rules import skipped_spans

SOURCE = '''
Number = int | None
LIMIT = 1 | 2

class Shape(Protocol):
    def area(self) -> float: return 3

@dataclass(frozen=True, eq=False)
class Point:
    x: int | None = 4

    def __repr__(self) -> str:
        return str(5)

    @abstractmethod
    @property
    def size(self, unit: float | None = 6) -> int | str:
        """It is 7 | 8."""
        log.info("ä %d", 9)
        print(10)
        assert unit, 11
        if unit == 12:
            raise ValueError(f"ä {13 + 14}", 15)
        for a, b in zip(self, range(16), strict=True):
            yield cast(int | float, 17)
        if TYPE_CHECKING:
            return 18
        self.log(19)

class Section(BaseModel):
    @field_validator("x")
    @classmethod
    def check(cls, x):
        return x

    @classmethod
    def make(cls):
        return cls(x=21)

_ROW: dict[str, int] = {"x": 22}
_ROWS = [_ROW, 23]
_SHARED = 24

class Example(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"x": 25, "rows": _ROWS}, _SHARED]})

@router.get("/x", responses={200: {"example": {"x": 26}}}, status_code=201)
def get():
    return _SHARED

if __name__ == "__main__":
    main(20)
'''


def is_skipped(code: str) -> bool:
    """Return whether the first place of that code is skipped."""
    before, found, _ = SOURCE.partition(code)
    assert found, code
    line = before.count("\n") + 1
    return any(span.contains((line, len(before) - before.rfind("\n") - 1)) for span in skipped_spans(SOURCE))


@pytest.mark.parametrize("code", [
    "| None\nLIMIT", "3", "True, eq", "| None = 4", "5)", "abstractmethod", "| None = 6", "| str:", "9)", "10)", "11\n",
    "13 + 14", "True):", "| float, 17", "18", "20)",
    "classmethod\n    def check", "22}", "23]", "25,", "26}"])
def test_code_without_behaviour_is_skipped(code: str) -> None:
    assert is_skipped(code)


@pytest.mark.parametrize("code", ["| 2", "False)", "4\n", "property", "6)", "12:", "15)", "range(16)", "17)", "19)",
                                  "classmethod\n    def make", "21", "24\n", "201"])
def test_behaviour_is_not_skipped(code: str) -> None:
    assert not is_skipped(code)
