"""Parts of a refit by processes side by side: nothing of it changes, to the bit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.features import Feature
from app.services.refit import parts
from app.services.refit.crew.ports import IN_TURN
from app.services.refit.crew.processes import Processes
from app.services.refit.fit import refit
from app.services.refit.policy import pack_plan
from app.services.refit.snapshot import digest
from tests.benchmarks.boards import Size


def test_two_processes_find_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    size = Size(400, 5, 2)
    inputs = size.inputs()
    features = [each | {"side": "ab"[number % 2]} for number, each in enumerate(inputs.contexts.features)]
    inputs = replace(inputs, contexts=replace(inputs.contexts, features=features))
    config = replace(size.config, features=(*size.config.features, Feature("side", "categorical")), segments=("side",))
    heard: list[float] = []
    one = refit(inputs, config, crew=IN_TURN)
    monkeypatch.setattr(parts, "WORTH_PROCESSES", 0)
    monkeypatch.setattr(parts, "Parts", None)
    two = refit(inputs, config, crew=Processes(2), told=heard.append)
    assert digest(one) == digest(two)
    assert {table.segment for table in two.tables} == {"", "side:a", "side:b"}
    assert (one.summary, one.diagnostics) == (two.summary, two.diagnostics)
    assert one.plan is not None
    assert two.plan is not None
    assert pack_plan(one.plan) == pack_plan(two.plan)
    assert heard == sorted(heard)
