"""Trees laid out in arrays: for a covariate row, what every tree of many boosters says costs a few array operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from app.stats.types import Bools, Floats, Ints

_FIELD = re.compile(r"^(split_feature|threshold|decision_type|left_child|right_child|leaf_value)=(.*)$", re.MULTILINE)
_DEFAULT_LEFT, _MISSING, _MISSING_NAN = 2, 12, 8
"""Bits of LightGBM's decision type: where a missing value goes, the kinds of missing values, and the kind NaN."""


@dataclass(frozen=True, slots=True)
class Walks:
    """All trees of B boosters: n inner nodes, then their leaves; T roots.

    Parameters
    ----------
    feature, threshold : (n,) an inner node sends x[feature] > threshold to the right.
    left, right : (n,) the children, nodes or leaves; leaf l has the number n + l.
    gaps_right : (n,) whether a missing value goes to the right.
    leaves : what each leaf adds.
    roots : (T,) the first node of each tree, booster by booster.
    starts : (B,) the first tree of each booster; each has one.
    depth : most steps from a root to a leaf.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    gaps_right: Bools
    leaves: Floats
    roots: Ints
    starts: Ints
    depth: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Walks:
        """From LightGBM's texts of the boosters; an empty one stands for a booster without trees."""
        found, starts = _Reading(), []
        for text in texts:
            starts.append(len(found.roots))
            found.read_all(text)
        return found.walks(starts)

    def scores(self, x: Floats) -> Floats:
        """(u, B) the sum of each booster's trees at covariates x (u, d), NaN where missing."""
        scores = np.zeros((len(x), self.starts.size))
        if self.starts.size:
            for row, values in enumerate(x):
                scores[row] = np.add.reduceat(self._reached(values), self.starts)
        return scores

    def _reached(self, values: Floats) -> Floats:
        """(T,) what the leaf adds that each tree leads to."""
        inner = self.feature.size
        seen = values.take(self.feature)
        right = seen > self.threshold
        if np.isnan(values).any():
            right |= np.isnan(seen) & self.gaps_right
        # Every node's choice is made beforehand, as there are few nodes to a tree; leaves lead to themselves.
        follows = np.arange(inner + self.leaves.size)
        follows[:inner] = np.where(right, self.right, self.left)
        place = self.roots
        for _ in range(self.depth):
            place = follows.take(place)
        return self.leaves.take(place - inner)


@dataclass(slots=True)
class _Reading:
    """Trees as they are read; leaf l is ~l among children and roots until all inner nodes are known."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    children: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    leaves: list[float] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    depth: int = 0

    def read_all(self, text: str) -> None:
        """Add a booster's trees, or one that says nothing."""
        trees = text.partition("\nend of trees")[0].split("\nTree=")[1:]
        for tree in trees or ["leaf_value=0"]:
            self.read(dict(_FIELD.findall(tree)))

    def read(self, tree: dict[str, str]) -> None:
        """Add a tree."""
        node, leaf = len(self.feature), len(self.leaves)
        leaves = [float(value) for value in tree["leaf_value"].split()]
        self.leaves += leaves
        self.roots.append(node if len(leaves) > 1 else ~leaf)
        if len(leaves) == 1:
            return
        sides = [[int(child) for child in tree[side].split()] for side in ("left_child", "right_child")]
        self.feature += map(int, tree["split_feature"].split())
        self.threshold += map(float, tree["threshold"].split())
        self.kind += map(int, tree["decision_type"].split())
        for mine, side in zip(self.children, sides, strict=True):
            mine += [child + node if child >= 0 else child - leaf for child in side]
        self.depth = max(self.depth, _depth(*sides))

    def walks(self, starts: list[int]) -> Walks:
        """All trees, the leaves numbered after the inner nodes."""
        threshold, kind = np.array(self.threshold, dtype=np.float64), _ints(self.kind)
        left, right, roots = (
            np.where(place >= 0, place, threshold.size + ~place) for place in map(_ints, (*self.children, self.roots))
        )
        # Where a split saw no missing value, LightGBM takes one for a zero.
        gaps_right = np.where((kind & _MISSING) == _MISSING_NAN, (kind & _DEFAULT_LEFT) == 0, threshold < 0)
        leaves = np.array(self.leaves, dtype=np.float64)
        numbers = (_ints(self.feature), threshold, left, right, gaps_right, leaves, roots, _ints(starts))
        return Walks(*numbers, self.depth)


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _depth(left: Sequence[int], right: Sequence[int]) -> int:
    """Most steps to a leaf; a child's number is higher than its parent's."""
    steps = [1] * len(left)
    for node, sides in enumerate(zip(left, right, strict=True)):
        for child in sides:
            if child >= 0:
                steps[child] = steps[node] + 1
    return max(steps)
