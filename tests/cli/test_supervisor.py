"""Restarts, giving up and stopping, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import psutil
import pytest

from app.cli.supervisor import GaveUp, Patience, Program, Supervisor
from tests.faults.parts import lives

QUICK = Patience(first=0.01, longest=0.02, healthy=60, failures=3)


def until(holds: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def supervisor(lines: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(lines.append, QUICK)
    yield made
    made.stop()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Program]:
    return lambda code: Program("child", [sys.executable, "-c", code], tmp_path / "child.log", dict(os.environ))


def pid_of(program: Program) -> int:
    assert program.process is not None
    return program.process.pid


def test_a_killed_child_is_started_again(
    supervisor: Supervisor, program: Callable[[str], Program], lines: list[str]
) -> None:
    child = program("import time; time.sleep(60)")
    supervisor.start(child)
    first = pid_of(child)
    os.kill(first, signal.SIGKILL)
    until(lambda: not child.alive())
    supervisor.look()
    until(lambda: supervisor.look() is None and child.alive())
    assert pid_of(child) != first
    assert lines == ["child stopped; it is started again in 0.0 s", "child runs again"]


def test_a_child_that_keeps_dying_is_given_up_with_its_last_lines(
    supervisor: Supervisor, program: Callable[[str], Program], lines: list[str]
) -> None:
    supervisor.start(program("print('no such table'); raise SystemExit(3)"))
    with pytest.raises(GaveUp, match=r"child stopped 4 times in a row(.|\n)*no such table"):
        supervisor.watch(Event(), pause=0.01)
    assert lines.count("child runs again") == 3


def test_waits_double_up_to_the_longest() -> None:
    patience = Patience(first=0.5, longest=5)
    assert [patience.wait(failures) for failures in (1, 2, 3, 4, 5, 9)] == [0.5, 1, 2, 4, 5, 5]


def test_a_child_that_ran_well_for_a_while_is_forgiven(lines: list[str], program: Callable[[str], Program]) -> None:
    stop = Event()

    def say(line: str) -> None:
        lines.append(line)
        if lines.count("child runs again") > 2:
            stop.set()

    supervisor = Supervisor(say, Patience(first=0.01, longest=0.01, healthy=0, failures=1))
    supervisor.start(program("pass"))
    supervisor.watch(stop, pause=0.01)
    supervisor.stop()


def test_a_stop_ends_children_that_ignore_it_and_what_they_left(
    supervisor: Supervisor, program: Callable[[str], Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.supervisor._SIGNALS", ((signal.SIGTERM, 0.2), (signal.SIGKILL, 5.0)))
    child = program(
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"
        "time.sleep(60)"
    )
    supervisor.start(child)
    until(lambda: child.log_tail() != "")
    grandchild, pid = int(child.log_tail()), pid_of(child)
    supervisor.stop()
    until(lambda: not psutil.pid_exists(pid) and not lives(grandchild))


def test_the_last_started_is_stopped_first(lines: list[str]) -> None:
    class Recorded(Program):
        def stop(self) -> None:
            lines.append(self.name)
            super().stop()

    supervisor = Supervisor(lines.append, QUICK)
    for name in ("database", "api"):
        supervisor.start(Recorded(name, ["true"], Path("/dev/null"), {}))
    supervisor.stop()
    assert lines == ["api", "database"]


def test_children_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom app.cli.supervisor import Program\n"
        f"child = Program('child', ['sleep', '60'], Path({str(tmp_path / 'log')!r}), {{}})\n"
        "child.start()\nprint(child.process.pid, flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert lives(pid)
        parent.kill()
    until(lambda: not lives(pid))
