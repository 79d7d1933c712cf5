"""Experiments on files: real votes, and votes drawn on a benchmark's scores."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from app.cli.experiments import experiments
from app.experiments.coverage.scored import Described, OnScores
from app.experiments.real import LLMFAO, MTBENCH
from app.experiments.scores import read_scores
from app.experiments.votes import read_votes
from app.formats.rows import UnusableFile

MTBENCH_HEADER = "source,question_id,category,turn,model_a,model_b,winner,judge_id\n"


def mtbench(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    rows = [
        f"human,{81 + number % 20},{'writing' if number % 2 else 'math'},1,{left},{right},"
        f"{rng.choice(['model_a', 'model_b', 'tie'])},{number % 7}"
        for number in range(240)
        for left, right in [rng.permutation(["x", "y", "z"])[:2]]
    ]
    path = folder / "mtbench.csv.gz"
    path.write_bytes(gzip.compress((MTBENCH_HEADER + "\n".join([*rows, "gpt4_pair,81,math,1,x,y,model_a,"])).encode()))
    return path


def scores(folder: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(2)
    names = "query_id,task,score:a,score:b,score:c\n"
    rows = [f"{n},{'xy'[n % 2]}," + ",".join(map(str, rng.integers(0, 2, 3) / 1.0)) for n in range(60)]
    table, features = folder / "scores.csv", folder / "features.csv"
    table.write_text(names + "\n".join(rows))
    features.write_text("query_id,f0\n" + "\n".join(f"{n},{rng.normal():.3f}" for n in reversed(range(60))))
    return table, features


def test_votes_are_read_with_features_and_propensities(tmp_path: Path) -> None:
    read = read_votes(mtbench(tmp_path), MTBENCH)
    sample = read.board.sample
    assert read.items == ("x", "y", "z")
    assert sample.n_rows == len(sample.votes) == 240
    assert read.board.x.x.shape == (20, 2)
    assert np.unique(sample.context).size == 20
    # Frequencies of six ordered pairs that are shown alike.
    assert sample.votes.propensity.mean() == pytest.approx(1 / 6, abs=0.02)
    assert 0.08 < sample.votes.propensity.min() <= sample.votes.propensity.max() < 0.3
    assert set(np.unique(sample.fold)) == set(range(5))


def test_the_order_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = mtbench(tmp_path)
    header, *rows = gzip.decompress(path.read_bytes()).decode().split("\n")
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("\n".join([header, *reversed(rows)]))
    first, second = (read_votes(each, MTBENCH).board for each in (path, shuffled))
    np.testing.assert_array_equal(first.sample.fold, second.sample.fold)
    np.testing.assert_array_equal(first.sample.votes.outcome, second.sample.votes.outcome)
    np.testing.assert_array_equal(first.x.x, second.x.x)


def test_a_real_file_is_ranked_and_drawn(tmp_path: Path) -> None:
    plot = tmp_path / "real.png"
    answer = CliRunner().invoke(
        experiments, ["real", "--mtbench", str(mtbench(tmp_path)), "--json", "--plot", str(plot)]
    )
    assert answer.exit_code == 0, answer.output
    found = orjson.loads(answer.stdout)
    assert [ranking["estimand"] for ranking in found] == ["borda", "bt", "rc"]
    for standing in found[0]["standings"]:
        assert standing["lower"] < standing["debiased"] < standing["upper"]
        assert 1 <= standing["best_rank"] <= standing["rank"] <= standing["worst_rank"] <= 3
    assert plot.stat().st_size > 1000


def test_a_file_that_is_no_such_file_is_a_usage_error(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    assert CliRunner().invoke(experiments, ["real", "--llmfao", str(other)]).exit_code == 2
    assert CliRunner().invoke(experiments, ["real"]).exit_code == 2
    assert CliRunner().invoke(experiments, ["coverage", "--scores", str(other)]).exit_code == 2
    with pytest.raises(UnusableFile, match="no column 'source'"):
        read_votes(other, LLMFAO)


def test_scores_are_joined_with_features_by_question(tmp_path: Path) -> None:
    table, features = scores(tmp_path)
    read = read_scores(table, features)
    assert read.items == ("a", "b", "c")
    assert read.scores.shape == (60, 3)
    assert read.task.tolist() == [0, 1] * 30
    last = features.read_text().splitlines()[1]
    assert last.startswith("59,")
    assert read.features[59, 0] == float(last.partition(",")[2])
    assert read_scores(table).features.shape == (60, 0)
    features.write_text("query_id,f0\n1,2.0\n")
    with pytest.raises(UnusableFile, match="no features of question '0' and 58 others"):
        read_scores(table, features)


def test_boards_on_scores_know_tasks_and_features(tmp_path: Path) -> None:
    read = read_scores(*scores(tmp_path))
    plain, described = OnScores(read, "davidson", n=300), Described(read, "davidson", n=300)
    truths = plain.truths()
    assert set(plain.replicate(truths, 0)) == {("debiased", name) for name in ("borda", "bt", "rc")}
    assert set(described.replicate(described.truths(), 0)) == {("debiased", "borda")}
    np.testing.assert_allclose(described.truths()["borda"], truths["borda"])
    seen = described.covariates(np.zeros((300, 2)), 0)
    np.testing.assert_array_equal(seen[:, 2:], read.features[plain.generator.questions(300, seed=0)])
