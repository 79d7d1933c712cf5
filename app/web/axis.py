"""One axis for all intervals of a table: where a value stands and where the ticks are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MARGIN = 3.0
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high`, drawn from `MARGIN` to 100 - `MARGIN` percent of the width."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Axis:
        """The axis that holds every value; one of width 1 where there is nothing to spread."""
        low, high = min(values, default=0.0), max(values, default=0.0)
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def percent(self, value: float) -> float:
        """Position of a value, in percent of the width, two decimals."""
        share = (value - self.low) / (self.high - self.low)
        return round(MARGIN + share * (100 - 2 * MARGIN), 2)

    def ticks(self, most: int = 7) -> list[float]:
        """At most `most` + 1 round values inside the axis."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * m for m in STEPS if power * m >= rough * (1 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def decimals(spread: float) -> int:
    """Decimals that show two digits of a standard error of size `spread`, 0 to 6."""
    return 2 if spread <= 0 or not math.isfinite(spread) else min(6, max(0, 1 - math.floor(math.log10(spread))))


def fewest_decimals(values: Sequence[float]) -> int:
    """The fewest decimals, up to 6, that tell the values exactly enough."""
    return next((n for n in range(6) if all(abs(round(value, n) - value) < 1e-9 for value in values)), 6)


def number(value: float | None, digits: int) -> str:
    """A value with a true minus sign, or a dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.removeprefix("-")


def share(value: float | None) -> str:
    """A share in percent; small and large ones are not rounded to nothing or all."""
    if value is None:
        return "–"
    if 0 < value < 0.005:
        return "<1%"
    if 0.995 <= value < 1:
        return ">99%"
    return f"{value:.0%}"
