"""A batched predictor-corrector interior point for monotone mixed complementarity problems of one size.

z >= 0, s = M z + r + nu a >= 0, z * s = 0, a'z = 1, with M positive semidefinite (not symmetric). Regularised
symmetric games are of this kind (NashEval, Section 4 and Appendix C: the equilibrium solves a variational inequality
over the simplex). Newton steps with Mehrotra's corrector (SIAM J. Optim. 2, 1992) from a strictly feasible start; all
rows are linear, so iterates stay feasible and z's bounds the gap of the game at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.stats.types import Bools, Floats, Ints

MOST_STEPS = 100
SHORT_OF_THE_EDGE = 0.995
CENTRING = 0.5
LEAST_FALL = 0.01
BALANCE = 1e-4
"""The least product z s stays above this share of their mean."""
MOST_HALVINGS = 20
CHUNK = 1 << 20
"""Numbers in the matrices of the problems that are worked on at once."""


@dataclass(frozen=True, slots=True)
class Problems:
    """n problems of V unknowns.

    Parameters
    ----------
    matrix : (n, V, V) M.
    offset : (n, V) r.
    mass : (V,) a, non-negative.
    """

    matrix: Floats
    offset: Floats
    mass: Floats

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, index: Ints | Bools | slice) -> Problems:
        """Some of the problems."""
        return Problems(self.matrix[index], self.offset[index], self.mass)

    def forces(self, z: Floats) -> Floats:
        """(n, V) M z + r."""
        forces: Floats = (self.matrix @ z[..., None])[..., 0] + self.offset
        return forces

    def parts(self) -> Iterator[slice]:
        """Slices that fit a processor's cache."""
        step = max(CHUNK // (self.mass.size + 1) ** 2, 1)
        yield from (slice(start, start + step) for start in range(0, len(self), step))


@dataclass(frozen=True, slots=True)
class Points:
    """Where the problems stand.

    Parameters
    ----------
    z : (n, V) positive.
    nu : (n,) multiplier of a'z = 1.
    """

    z: Floats
    nu: Floats

    def take(self, index: Ints | Bools | slice) -> Points:
        """Those of some of the problems."""
        return Points(self.z[index], self.nu[index])


def follow(problems: Problems, start: Points, tolerance: float) -> Points:
    """Follow the central path until z's <= tolerance, or no step makes it less.

    Parameters
    ----------
    problems : the problems.
    start : z > 0 with a'z = 1 and s > 0.
    tolerance : of z's.
    """
    found = Points(start.z.copy(), start.nu.copy())
    for part in problems.parts():
        reached = _follow(problems.take(part), start.take(part), tolerance)
        found.z[part], found.nu[part] = reached.z, reached.nu
    return found


def _follow(problems: Problems, start: Points, tolerance: float) -> Points:
    found = Points(start.z.copy(), start.nu.copy())
    open_ = np.arange(len(problems))
    for _ in range(MOST_STEPS):
        own, at = problems.take(open_), found.take(open_)
        slack = own.forces(at.z) + at.nu[:, None] * own.mass
        going = (at.z * slack).sum(axis=1) > tolerance
        # Rounding may take a slack to the edge; such a problem is as far as it gets.
        going &= (slack > 0).all(axis=1)
        open_, own, at, slack = open_[going], own.take(going), at.take(going), slack[going]
        if not open_.size:
            break
        step, rise, length = _move(own, at.z, slack)
        found.z[open_] = at.z + length[:, None] * step
        found.nu[open_] = at.nu + length * rise
    return found


def _move(problems: Problems, z: Floats, slack: Floats) -> tuple[Floats, Floats, Floats]:
    """Mehrotra's step (n, V), that of nu (n,), how much of both to take (n,); a careful one where that is unsound."""
    system = bordered(problems)
    place = np.arange(problems.mass.size)
    system[:, place, place] += slack / z
    missing = 1.0 - z @ problems.mass
    step, rise = _solved(system, _corrected(problems, (z, slack), _solved(system, -slack, missing)), missing)
    length = _length(problems, (z, slack), (step, rise))
    poor = np.flatnonzero(~_sound(problems, (z, slack), (step, rise), length))
    if poor.size:
        own, at, edge = problems.take(poor), z[poor], slack[poor]
        centre = CENTRING * (at * edge).mean(axis=1, keepdims=True)
        careful = _solved(system[poor], centre / at - edge, missing[poor])
        step[poor], rise[poor] = careful
        length[poor] = _careful(own, (at, edge), careful)
    return step, rise, length


def _careful(problems: Problems, at: tuple[Floats, Floats], step: tuple[Floats, Floats]) -> Floats:
    """(n,) the longest of a step, half of it, a quarter … that is sound; some always is, as M is semidefinite."""
    length = _length(problems, at, step)
    for _ in range(MOST_HALVINGS):
        sound = _sound(problems, at, step, length)
        if sound.all():
            break
        length = np.where(sound, length, 0.5 * length)
    return length


def _sound(problems: Problems, at: tuple[Floats, Floats], step: tuple[Floats, Floats], length: Floats) -> Bools:
    """(n,) whether the products z s fall in the mean, and stay balanced (Wright 1997, ch. 5)."""
    change, share = _slack_step(problems, *step), length[:, None]
    before, after = at[0] * at[1], (at[0] + share * step[0]) * (at[1] + share * change)
    falls = after.mean(axis=1) <= (1.0 - LEAST_FALL * length) * before.mean(axis=1)
    balance = np.minimum(BALANCE, 0.5 * before.min(axis=1) / before.mean(axis=1))
    sound: Bools = falls & (after.min(axis=1) >= balance * after.mean(axis=1))
    return sound


def _corrected(problems: Problems, at: tuple[Floats, Floats], affine: tuple[Floats, Floats]) -> Floats:
    """(n, V) right side of the step that aims at z * s = sigma mu, given the one that aims at 0."""
    (z, slack), (step, rise) = at, affine
    change = _slack_step(problems, step, rise)
    centre = (z * slack).mean(axis=1)
    length = np.minimum(_reach(z, step), _reach(slack, change))[:, None]
    ahead = ((z + length * step) * (slack + length * change)).mean(axis=1)
    aim: Floats = (np.clip(ahead / centre, 0.0, 1.0) ** 3 * centre)[:, None]
    # The second-order term of a step that is cut short is cut as well: whole, it can send Mehrotra's rule in circles.
    return (aim - length**2 * step * change) / z - slack


def bordered(problems: Problems) -> Floats:
    """(n, V + 1, V + 1) M with a beside and below it."""
    size = problems.mass.size
    system = np.zeros((len(problems), size + 1, size + 1))
    system[:, :size, :size] = problems.matrix
    system[:, :size, size] = system[:, size, :size] = problems.mass
    return system


def _solved(system: Floats, right: Floats, mass: Floats) -> tuple[Floats, Floats]:
    found = np.linalg.solve(system, np.concatenate([right, mass[:, None]], axis=1)[..., None])[..., 0]
    return found[:, :-1], found[:, -1]


def _slack_step(problems: Problems, step: Floats, rise: Floats) -> Floats:
    change: Floats = (problems.matrix @ step[..., None])[..., 0] + rise[:, None] * problems.mass
    return change


def _length(problems: Problems, at: tuple[Floats, Floats], step: tuple[Floats, Floats]) -> Floats:
    reach = np.minimum(_reach(at[0], step[0]), _reach(at[1], _slack_step(problems, *step)))
    return np.minimum(1.0, SHORT_OF_THE_EDGE * reach)


def _reach(at: Floats, step: Floats) -> Floats:
    """(n,) the longest step <= 1 / .995 that keeps everything non-negative."""
    ratio = np.divide(-at, step, out=np.full(at.shape, 1.0 / SHORT_OF_THE_EDGE), where=step < 0)
    longest: Floats = np.minimum(ratio.min(axis=1), 1.0 / SHORT_OF_THE_EDGE)
    return longest
