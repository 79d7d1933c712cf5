"""What the pages say: every code of the rankings in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Notice:
    """A banner: how serious it is (`info`, `caution`, `alarm`), its headline and what it means."""

    tone: str
    headline: str
    meaning: str


BOARD_STATUS: Mapping[str, Notice] = MappingProxyType(
    {
        "pending": Notice(
            "info", "No ranking yet", "Votes are being collected. The first ranking appears after the next refit."
        ),
        "propensities_inconsistent": Notice(
            "alarm",
            "The chances of being shown do not fit the votes",
            "Pairs were voted on more or less often than the propensities in use allow. "
            "Scores may be biased until the cause is found.",
        ),
        "disconnected": Notice(
            "caution",
            "Some items cannot be compared",
            "No chain of votes links every item. Only the linked group with most votes is ranked.",
        ),
        "extrapolated": Notice(
            "caution",
            "Partly extrapolated",
            "At least one score rests by more than 5% on pairs that nobody voted on, and there leans on the model. "
            "The pairs “observed” use voted pairs alone.",
        ),
        "few_contexts": Notice(
            "caution",
            "Few contexts",
            "The votes come from fewer than 30 distinct contexts: what the intervals say about new ones is rough.",
        ),
        "few_votes": Notice(
            "caution", "Few votes", "At least one item has too few votes for a score or an interval to lean on."
        ),
    }
)

MIXTURE_STATUS: Mapping[str, Notice] = MappingProxyType(
    {
        "pending": Notice("info", "No mixture yet", "It appears after the next refit."),
        "disconnected": Notice(
            "caution", "Some items do not play", "No chain of votes links every item. Only the linked group plays."
        ),
        "extrapolated": Notice(
            "caution", "Partly extrapolated", "More than 5% of the pairs have no votes; the model speaks for them."
        ),
        "few_votes": Notice("caution", "Few votes", "At least one item has too few votes to lean on."),
    }
)

ITEM_STATUS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "few_votes": ("few votes", "Too few votes for a score or an interval to lean on."),
        "extrapolated": ("extrapolated", "More than 5% of this score rests on pairs that nobody voted on."),
        "disconnected": ("not linked", "No chain of votes links this item to the ranked group."),
        "separated": ("one-sided", "Won or lost every vote, so the votes set no finite score."),
        "retired": ("retired", "No longer takes part; the score is that of its last ranking."),
    }
)

ESTIMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "bt": ("Bradley–Terry", "Score: log-odds against the average item. Zero is the average."),
        "borda": ("Borda", "Score: share won against the other items, ties as half, averaged over rivals and sides."),
        "rc": ("Rank centrality", "Score: share of time a walk spends on the item that always moves to a better one."),
        "threshold": ("Threshold", "Score: share of rivals that the item beats, with a soft step at one half."),
        "robust": ("Worst rival", "Score: share won against the rivals that are hardest for the item."),
    }
)

ESTIMATORS: Mapping[str, str] = MappingProxyType(
    {
        "debiased": "Debiased",
        "plugin": "Plug-in (no valid interval)",
        "restricted": "Restricted Bradley–Terry",
        "classical": "Classical fit",
        "contextual-bt": "Contextual Bradley–Terry (no valid interval)",
    }
)
WITHOUT_INTERVAL = ("plugin", "contextual-bt")

PAIRS: Mapping[str, str] = MappingProxyType({"auto": "Automatic", "all": "All pairs", "observed": "Observed pairs"})

OBSERVED = (
    "Only pairs that somebody voted on are used; “unsupported” says how much of a score over all pairs would rest on "
    "the others."
)

INTERVALS: Mapping[str, str] = MappingProxyType(
    {
        "simultaneous": "Simultaneous",
        "marginal": "One at a time",
        "bonferroni": "Bonferroni",
        "sidak": "Šidák",
        "ellipsoid": "Scheffé",
        "anytime": "Anytime",
    }
)

INTERVAL_MEANING: Mapping[str, str] = MappingProxyType(
    {
        "simultaneous": "all intervals hold their true score together with {level} confidence",
        "marginal": "each interval alone holds its true score with {level} confidence; all together, less often",
        "bonferroni": "all intervals hold their true score together with at least {level} confidence",
        "sidak": "all intervals hold their true score together with {level} confidence",
        "ellipsoid": "all scores and all their combinations lie within reach together with {level} confidence",
        "anytime": "the intervals hold at every look at the board together, with {level} confidence",
    }
)

DIAGNOSTICS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "balance": ("Balance", "Do the chances of being shown add up to the votes? z compares them pair by pair."),
        "support": ("Support", "Which pairs have votes, and whether chains of votes link all items."),
        "overlap": ("Overlap", "How many equally weighted votes the votes are worth, and what the heaviest weigh."),
        "learner": ("Outcome model", "How well it predicts votes that it has not seen. Lower log loss is better."),
        "position": ("Sides", "What being shown first is worth, as a difference of shares; zero is fair."),
        "intransitivity": (
            "Circles",
            "Whether items beat each other in circles, and whether scores can carry the pairs.",
        ),
        "sensitivity": ("Ties", "Ranks if ties and their like counted half, or not at all."),
        "outcomes": ("Ties by item", "How often outcomes that favour nobody come up."),
        "voters": ("Voters", "Agreement is 1 for those who vote like the others, 0 at random, −1 the wrong way round."),
        "drift": ("Drift", "Share won in the later half less that in the earlier, beyond what the model expects."),
    }
)

DIAGNOSTIC_STATUS: Mapping[str, str] = MappingProxyType(
    {
        "ok": "Nothing conspicuous.",
        "no_votes": "No votes yet.",
        "estimated": "Propensities are estimated from these votes and agree with them by construction.",
        "propensities_inconsistent": "The chances do not fit the votes.",
        "sparse": "Some pairs have no votes.",
        "disconnected": "Some items are not linked.",
        "worse": "A simpler prediction does better.",
        "one_sided": "No pair was shown in both orders.",
        "few_pairs": "No three items have votes on all their pairs.",
        "cyclic": "Some items beat each other in circles beyond noise.",
        "skewed": "The pairs are not carried by scores alone.",
        "no_ties": "No outcome favours nobody.",
        "leader_changes": "The leader depends on how ties count.",
        "few_votes": "Nobody has votes enough.",
        "conspicuous": "Some voters stand out.",
        "one_time": "All votes are of one time.",
        "drift": "Some items changed beyond noise.",
    }
)

SCALES: Mapping[str, str] = MappingProxyType({"natural": "Natural", "elo": "Elo"})


def named(words: Mapping[str, str], code: str) -> str:
    """The words for a code, or the code itself where a board brings its own name."""
    return words.get(code, code)


def estimand(code: str) -> tuple[str, str]:
    """Label and meaning of an estimand; a board's own variant goes by its name."""
    return ESTIMANDS.get(code, (code, "A variant that this board defines."))


def spoken(code: str) -> str:
    """`both_bad` as `both bad`."""
    return code.replace("_", " ")
