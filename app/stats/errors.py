"""What can go wrong in the statistical core.

StatsError
├── InvalidInput     the arrays do not fit each other or leave their range
├── NotIdentified    the data cannot tell the value asked for
└── NotConverged     a solver stopped short of its tolerance
"""


class StatsError(Exception):
    """Base of every error that the statistical core raises."""


class InvalidInput(StatsError):
    """Arrays whose shapes, types or ranges do not fit."""


class NotIdentified(StatsError):
    """A value that the data at hand do not determine."""


class NotConverged(StatsError):
    """A solver that stopped before its certificate reached the tolerance.

    Parameters
    ----------
    gap : the certificate reached, in the solver's own units.
    tolerance : what it had to reach.
    """

    def __init__(self, gap: float, tolerance: float) -> None:
        super().__init__(f"stopped at a gap of {gap:.3g}, tolerance {tolerance:.3g}")
        self.gap = gap
        self.tolerance = tolerance
