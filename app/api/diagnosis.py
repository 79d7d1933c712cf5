"""What diagnostics look like."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel

from app.api.overlap import BalanceSection, OverlapSection, Section, SupportSection

Interval = tuple[float, float]


class Measure(BaseModel):
    """A number with its 95% interval, and how many votes or pairs are behind it."""

    value: float
    standard_error: float
    interval: Interval
    size: int


class Bin(BaseModel):
    """Votes of similar predictions."""

    predicted: float
    observed: float
    standard_error: float
    votes: int


class OutcomeCalibration(BaseModel):
    """Predicted and observed frequencies of one outcome; chi-square over the bins that are large enough."""

    outcome: str
    expected_error: float
    chi_square: float | None
    degrees: int
    p_value: float | None
    bins: list[Bin]


class LearnerSection(Section):
    """Mean log loss on votes that the models were not fitted to; `base`: the outcomes' shares in the other folds;
    `classical`: Bradley–Terry by maximum likelihood on them, with constant rates of ties. `worse`: one of them wins.
    """

    name: str
    log_loss: float | None
    base_log_loss: float | None
    classical_log_loss: float | None
    gain_over_base: Measure | None
    gain_over_classical: Measure | None
    calibration: list[OutcomeCalibration]


class PositionSection(Section):
    """`advantage`: debiased mean over pairs of the share won when shown first less that when shown second;
    `left_share`: of the decisive votes as counted.
    """

    advantage: Measure | None
    left_share: Measure | None
    rows_used: int | None = None


class SkewTest(BaseModel):
    """Chi-square test that log-odds of decisive votes are differences of scores; `skew` is what noise leaves over."""

    statistic: float
    expected: float
    degrees: float
    p_value: float
    pairs: int
    skew: float


class IntransitivitySection(Section):
    """Triples with votes on all pairs: cyclic by their mean shares, and `certain`ly so (95%, all together)."""

    seen: int
    cyclic: int
    certain: int
    critical: float
    share: float | None
    cycles: list[tuple[str, str, str]]
    test: SkewTest | None
    rows_used: int | None = None


class RuleChange(BaseModel):
    """A ranking under another rule against that under the board's: the item that moves most, and by how many ranks."""

    rule: str
    leader: str | None
    kendall: float | None
    largest_change: int | None
    item: str | None


class ItemRanks(BaseModel):
    """An item's rank under each rule."""

    item: str
    ranks: dict[str, int]


class EstimandSensitivity(BaseModel):
    """Debiased ranks of one estimand."""

    estimand: str
    rules: list[RuleChange]
    items: list[ItemRanks]


class SensitivitySection(Section):
    """Ranks where outcomes that favour nobody are credited in other ways, from the same models."""

    rules: list[str]
    estimands: list[EstimandSensitivity]
    rows_used: int | None = None


class ItemRates(BaseModel):
    """Shares of an item's votes."""

    item: str
    votes: int
    rates: dict[str, float] | None


class OutcomesSection(Section):
    """How often outcomes that favour nobody come up."""

    outcomes: list[str]
    rates: dict[str, float] | None
    items: list[ItemRates]


class Taste(BaseModel):
    """Standard deviations among voters beyond chance."""

    agreement: float
    side: float


class VoterRow(BaseModel):
    """`agreement`: 1 like the votes on the whole, 0 at random, −1 the wrong way round; `side`: lean to the left."""

    voter: str | None
    votes: int
    agreement: float
    agreement_z: float
    side: float
    side_z: float
    p_value: float
    flagged: bool


class VotersSection(Section):
    """Voters against the model; of those flagged, an expected 5% at most are ordinary. At most 50 are listed."""

    least_votes: int
    false_discoveries: float
    judged: int
    flagged: int
    taste: Taste | None
    listed: list[VoterRow]


class ItemDrift(BaseModel):
    """Change of the share won beyond what the model expects; `p_value` counts all items."""

    item: str
    change: float | None
    standard_error: float | None
    p_value: float | None
    beyond_noise: bool


class DriftSection(Section):
    """Votes from after `since` against those before."""

    since: datetime | None
    drifting: int
    items: list[ItemDrift]


class JudgeHeard(BaseModel):
    """A judge, and the judgements that bear on the board: how many, and of how many contexts."""

    name: str
    judgements: int
    contexts: int


class PropensityModel(BaseModel):
    """Mean −log propensity of the pairs that were labelled, by the model and by frequencies alone, on held-out
    contexts; null without votes. `folds_helped`: folds in which the model is used.
    """

    log_loss: float | None
    frequency_log_loss: float | None
    folds_helped: int


class Diagnostics(BaseModel):
    """What a board's rankings rest on. Sections are null before the first snapshot.

    `judges` are features of the outcome model; those `left_out` have no judgement that bears on the board, or no room.
    `propensity_model` is null unless propensities are learned. `rankings` are the votes on menus that count;
    `rankings_left_out` those that no score uses, because every propensity of the board is logged.
    """

    board: str
    status: str
    spec: str
    snapshot: UUID | None
    computed_at: datetime | None
    votes_through: datetime | None
    votes: int
    rows: int
    rankings: int
    rankings_left_out: int
    judges: list[JudgeHeard]
    judges_left_out: list[JudgeHeard]
    propensity_model: PropensityModel | None
    balance: BalanceSection | None
    overlap: OverlapSection | None
    support: SupportSection | None
    learner: LearnerSection | None
    position: PositionSection | None
    intransitivity: IntransitivitySection | None
    sensitivity: SensitivitySection | None
    outcomes: OutcomesSection | None
    voters: VotersSection | None
    drift: DriftSection | None
