"""Routes below /v1/draft: draft analysis by the win head (docs/draft.md)."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from five.agent.draft.evidence import calibration_json
from five.agent.draft.pick_order import DraftError
from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.problems import Problem, blob_store_errors, responses
from rapid.blobs import BlobMissing
from rapid.store.errors import Corrupt

router = APIRouter(tags=["draft"])
BUSY = "Too many drafts are being analysed, or too many requests."
NAMES = r"^[a-z0-9_]*(,[a-z0-9_]+)*$"
Heroes = Annotated[str, Query(pattern=NAMES, max_length=1000, description="Heroes, comma-separated.")]
_PAIR: dict[str, Any] = {"hero": "sniper", "other": "lion", "allied": True, "games": 214}
_CHOICE: dict[str, Any] = {"hero": "sniper", "win": 0.53, "own": 0.53, "played": 420,
                           "rarest": {**_PAIR, "allied": False}}
_TABLE: dict[str, Any] = {"name": "version-1200", "heroes": ["lion", "nevermore", "sniper", "sven"], "team": 2,
                          "shared": False, "facts": {"version": 1200}}
_BIN: dict[str, Any] = {"low": 0.5, "high": 0.6, "games": 2, "predicted": 0.55, "won": 0.5, "at_least": 0.1,
                        "at_most": 0.9}


class PairOfHeroes(BaseModel):
    """Two heroes, and how many training games had both."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PAIR]})

    hero: str = Field(description="The one.")
    other: str = Field(description="The other.")
    allied: bool = Field(description="Whether they are in one team; otherwise they are opponents.")
    games: int = Field(description="Recorded training games with both.")


class DraftChoice(BaseModel):
    """A hero that can be picked next."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CHOICE]})

    hero: str = Field(description="Its name.")
    win: float = Field(description="Probability that Radiant wins if it is picked and both teams then pick "
                       "optimally.")
    own: float = Field(description="The same probability for the team to move.")
    played: int | None = Field(description="Teams with it in recorded training games; null: no game is recorded.")
    rarest: PairOfHeroes | None = Field(description="The rarest of its pairs with the heroes picked so far; null: "
                                        "nothing is picked, or no game is recorded.")


class DraftTable(BaseModel):
    """A table of the win probability of every line-up of a hero pool, computed by one version."""

    model_config = ConfigDict(json_schema_extra={"examples": [_TABLE]})

    name: str = Field(description="Its name.")
    heroes: list[str] = Field(description="The pool.")
    team: int = Field(description="Heroes of a team.")
    shared: bool = Field(description="Whether both teams may pick the same hero, because the pool is too small for "
                         "two teams.")
    facts: dict[str, Any] = Field(description="The version that computed it, and how.")


class DraftTables(BaseModel):
    """The draft tables of the run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tables": [_TABLE]}]})

    tables: list[DraftTable] = Field(description="The tables, newest version first.")


class Draft(BaseModel):
    """State and analysis of a draft. Probabilities are the win head's at a game's first observation; a drawn game
    counts half."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "table": "version-1200", "heroes": ["lion", "nevermore", "sniper", "sven"], "team": 2, "shared": False,
        "line_ups": 6, "facts": {"version": 1200}, "order": "DRRD", "to_move": "R", "radiant": [], "dire": ["lion"],
        "banned": [], "win": 0.53, "choices": [
            _CHOICE],
        "games": 812, "support": None}]})

    table: str = Field(description="Name of the table.")
    heroes: list[str] = Field(description="The table's pool.")
    team: int = Field(description="Heroes of a team.")
    shared: bool = Field(description="Whether both teams may pick the same hero.")
    line_ups: int = Field(description="Number of line-ups in the table.")
    facts: dict[str, Any] = Field(description="The version that computed the table, and how.")
    order: str = Field(description="Order of picks: R and D.")
    to_move: str = Field(description="R, D, or '' after the last pick.")
    radiant: list[str] = Field(description="Radiant's picks.")
    dire: list[str] = Field(description="Dire's picks.")
    banned: list[str] = Field(description="Banned heroes.")
    win: float = Field(description="Probability that Radiant wins if both teams pick optimally from now on.")
    choices: list[DraftChoice] = Field(description="Possible picks of the team to move, best first.")
    games: int = Field(description="Number of recorded training games.")
    support: PairOfHeroes | None = Field(description="The rarest pair among the heroes picked so far.")


class CalibrationBin(BaseModel):
    """Games with a prediction in an interval. All but the first three members are null without games."""

    model_config = ConfigDict(json_schema_extra={"examples": [_BIN]})

    low: float = Field(description="Lower end of the interval.")
    high: float = Field(description="Upper end of the interval.")
    games: int = Field(description="Games.")
    predicted: float | None = Field(description="Mean prediction that Radiant wins.")
    won: float | None = Field(description="Radiant's mean score, a drawn game counting half.")
    at_least: float | None = Field(description="Lower end of its 95 % confidence interval.")
    at_most: float | None = Field(description="Upper end of its 95 % confidence interval.")


class DraftCalibration(BaseModel):
    """Calibration of the win head at the first observation of self-play games. Members are null without games."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "games": 2, "first": 1100, "last": 1200, "brier": 0.24, "brier_constant": 0.25, "gain_error": 0.003,
        "is_informative": None, "error": 0.03, "bins": [_BIN]}]})

    games: int = Field(description="Number of self-play games.")
    first: int | None = Field(description="The oldest version in these games.")
    last: int | None = Field(description="The newest.")
    brier: float | None = Field(description="Mean squared error of the prediction.")
    brier_constant: float | None = Field(description="Mean squared error of always predicting the mean result.")
    gain_error: float | None = Field(description="Standard error of brier_constant - brier.")
    is_informative: bool | None = Field(description="Whether brier is less than brier_constant by more than two "
                                        "standard errors. If not, the head has learned nothing that drafts can use. "
                                        "Null with fewer than 30 games.")
    error: float | None = Field(description="Mean distance between prediction and result, over the bins.")
    bins: list[CalibrationBin] = Field(description="Games by prediction.")


@router.get("/draft/tables")
async def draft_tables(caller: Viewer, context: ContextDep) -> DraftTables:
    """Return the draft tables. `five draft --make` creates one; the evaluator does so for rated versions with a small
    hero pool.
    """
    with blob_store_errors():
        return DraftTables.model_validate({"tables": await context.read_blobs(context.drafts.tables)})


@router.get("/draft/calibration", responses=responses(_429=BUSY))
async def draft_calibration(caller: Viewer, context: ContextDep) -> DraftCalibration:
    """Return the calibration of the win head on training games, at their start."""
    with context.draft_slots.take(caller):
        found = await run_in_threadpool(context.drafts.reliability)
    return DraftCalibration.model_validate(calibration_json(found))


@router.get("/draft", responses=responses(_404="There is no such table, or none at all yet.",
                                          _409="The draft is invalid; the detail gives the reason.", _429=BUSY))
async def draft(caller: Viewer, context: ContextDep, radiant: Heroes = "", dire: Heroes = "", banned: Heroes = "",
          order: Annotated[str, Query(pattern=r"^[RDrd]*$", max_length=10, description="Order of picks: R and D; "
                                      "default DRRDRDRDDR for five heroes per team.")] = "",
          table: Annotated[str | None, Query(pattern=r"^version-[0-9]{1,15}(-[0-9a-f]{8})?$", description="A table's "
                                             "name; by default the newest.")] = None) -> Draft:
    """Return the win probability of each possible pick if both teams then pick optimally, and how often its heroes met
    in training.
    """
    try:
        # Limited, because a waiting request holds one of the forty threads of all routes.
        with context.draft_slots.take(caller), blob_store_errors():
            found = await run_in_threadpool(context.drafts.draft, table, _split(radiant), _split(dire), _split(banned),
                                            order)
    except BlobMissing as error:
        raise Problem(404, str(error)) from None
    except DraftError as error:
        raise Problem(409, str(error)) from None
    except (Corrupt, ValueError) as error:
        raise Problem(404, f"the draft table is unreadable: {error}") from None
    return Draft.model_validate(found)


def _split(names: str) -> list[str]:
    return [name for name in names.split(",") if name]
