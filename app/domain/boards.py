"""Boards: every field of a board with its default and range, and what may still change once votes exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from app.domain import features, outcomes
from app.domain.errors import Conflict, Invalid
from app.domain.estimands import BUILT_IN, Estimand, names_of
from app.domain.features import Feature
from app.domain.fields import Flag, Label, Line, Positive, Share, Slug, whole
from app.domain.outcomes import PRESETS, Category, Preset

Unit = Literal["battle", "context"]
Objective = Literal["a-optimal", "d-optimal", "e-optimal", "contrast", "uniform"]
CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquisition:
    """Which pair is asked next; `budget` is the expected labelling cost per context, `floor` a probability."""

    __pydantic_config__ = CLOSED

    estimand: Label = "bt"
    objective: Objective = "a-optimal"
    mode: Literal["bernoulli", "single", "one"] = "bernoulli"
    budget: Positive = 1.0
    floor: Share | None = None
    exploration: Share = 0.0
    lease_seconds: whole(1, 31_536_000) = 3600  # type: ignore[valid-type]
    overlap: whole(1, 1000) = 1  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """How equilibria are regularised and payoffs aggregated."""

    __pydantic_config__ = CLOSED

    regularisation: Annotated[float, Field(strict=True, ge=0, le=1000, allow_inf_nan=False)] = 0.05
    regulariser: Literal["l2", "kl"] = "l2"
    aggregator: Literal["uniform"] = "uniform"

    def __post_init__(self) -> None:
        if self.regulariser == "kl" and self.regularisation == 0:
            detail = "the regulariser kl needs a strength above 0"
            raise Invalid("kl-without-strength", detail, path="equilibrium.regularisation", expected="above 0", got=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Voting:
    """What one voter may send; days are those of UTC."""

    __pydantic_config__ = CLOSED

    revotes: Flag = False
    per_voter_per_day: whole(1, 1_000_000) | None = None  # type: ignore[valid-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refitting:
    """A refit is due after so many votes, or so many seconds with any vote waiting."""

    __pydantic_config__ = CLOSED

    votes: whole(1, 1_000_000_000) = 500  # type: ignore[valid-type]
    seconds: whole(1, 31_536_000) = 3600  # type: ignore[valid-type]


_LEARNER = (
    "davidson: linear and boosted utilities of the items; lightgbm: DMLRank's classifier, tuned by cross-validation; "
    "auto: the one that predicts votes of other folds better"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardConfig:
    """Everything a board decides about its data and its scores."""

    __pydantic_config__ = CLOSED

    open_items: Flag = False
    unit: Unit = "battle"
    population: Literal["prompts", "fixed"] = "prompts"
    cluster: Literal["context", "voter", "both"] = "context"
    outcomes: Preset | Annotated[tuple[Category, ...], Field(min_length=2, max_length=20)] = "arena"
    features: Annotated[tuple[Feature, ...], Field(max_length=500)] = ()
    segments: Annotated[tuple[Label, ...], Field(max_length=50)] = ()
    propensity: Literal["auto", "logged", "estimated", "estimated-lightgbm"] = "auto"
    learner: Annotated[Literal["davidson", "lightgbm", "auto"], Field(description=_LEARNER)] = "davidson"
    folds: whole(2, 50) = 5  # type: ignore[valid-type]
    estimands: Annotated[tuple[Label | Estimand, ...], Field(max_length=50)] = ("borda", "bt", "rc")
    acquisition: Acquisition = field(default_factory=Acquisition)
    equilibrium: Equilibrium = field(default_factory=Equilibrium)
    votes: Voting = field(default_factory=Voting)
    refit: Refitting = field(default_factory=Refitting)

    def __post_init__(self) -> None:
        outcomes.check(self.categories)
        features.check(self.features, self.segments)
        served = {*BUILT_IN, *names_of(self.estimands)}
        if self.acquisition.estimand not in served:
            raise Invalid(
                "unknown-estimand",
                f"the board serves no estimand {self.acquisition.estimand!r}",
                path="acquisition.estimand",
                expected=sorted(served),
                got=self.acquisition.estimand,
            )

    @property
    def categories(self) -> tuple[Category, ...]:
        """The outcomes in the order in which votes number them."""
        return PRESETS[self.outcomes] if isinstance(self.outcomes, str) else self.outcomes

    @property
    def named_estimands(self) -> tuple[Estimand, ...]:
        """What the board adds to the built-in estimands: variants, and registered ones, also those by name alone."""
        added = [entry for entry in self.estimands if entry not in BUILT_IN]
        return tuple(Estimand(name=each, kind=each) if isinstance(each, str) else each for each in added)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardDraft(BoardConfig):
    """A board as it is sent: its names beside its configuration."""

    __pydantic_config__ = CLOSED

    slug: Slug
    title: Line | None = None
    public: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A stored board."""

    id: int
    slug: str
    title: str
    public: bool
    config: BoardConfig
    created_at: datetime
    updated_at: datetime


CONFIG: TypeAdapter[BoardConfig] = TypeAdapter(BoardConfig)
DRAFT: TypeAdapter[BoardDraft] = TypeAdapter(BoardDraft)


def config_of(draft: BoardDraft) -> BoardConfig:
    """The part of a draft that is configuration."""
    return BoardConfig(**{name: getattr(draft, name) for name in BoardConfig.__dataclass_fields__})


def to_document(config: BoardConfig) -> dict[str, Any]:
    """The stored form: outcomes spelled out, with the preset's name where one was chosen."""
    document: dict[str, Any] = CONFIG.dump_python(config, mode="json")
    preset = config.outcomes if isinstance(config.outcomes, str) else None
    categories = [{"name": each.name, "first": each.first, "second": each.second} for each in config.categories]
    return {**document, "outcomes": categories, "preset": preset}


def from_document(document: Mapping[str, Any]) -> BoardConfig:
    """Read the stored form back."""
    fields = {name: value for name, value in document.items() if name != "preset"}
    if document["preset"] is not None:
        fields["outcomes"] = document["preset"]
    return CONFIG.validate_python(fields)


def public_document(board: Board) -> dict[str, Any]:
    """A board as the API shows it and as a draft would send it."""
    return {
        "slug": board.slug,
        "title": board.title,
        "public": board.public,
        **CONFIG.dump_python(board.config, mode="json", exclude_none=False),
    }


def merge(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """JSON merge patch (RFC 7396): null takes a field back to its default, objects merge, all else replaces."""
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            before = merged.get(name)
            merged[name] = merge(before if isinstance(before, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What of a board is there already."""

    votes: bool
    judgements: bool
    contexts: bool


def check_change(before: BoardConfig, after: BoardConfig, stored: Stored) -> None:
    """Refuse what would change the meaning of votes, judgements and contexts already stored."""
    if stored.votes and before.unit != after.unit:
        raise _frozen("unit", before.unit, after.unit)
    if (stored.votes or stored.judgements) and before.categories != after.categories:
        raise _frozen("outcomes", before.outcomes, after.outcomes)
    declared = {feature.name: feature for feature in after.features}
    for feature in before.features:
        if stored.contexts and declared.get(feature.name) != feature:
            raise _frozen("features", feature.name, declared.get(feature.name))


def _frozen(path: str, before: Any, after: Any) -> Conflict:
    detail = f"{path} cannot change any more: stored votes, judgements or contexts rest on it"
    return Conflict(f"{path}-in-use", detail, path=path, expected=before, got=after)
