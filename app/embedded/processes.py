"""Starting, watching and stopping a server process, ours or adopted."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from app.embedded.accounts import Account
from app.embedded.errors import NotStarted

_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 16_384


def die_with_parent(number: signal.Signals, *, parent: int | None = None) -> Callable[[], None] | None:
    """Return what a new child runs so that the kernel signals it when its parent dies (Linux only).

    The kernel watches the thread that started the child: start children from a thread that lives on. `parent` is this
    process unless it is named, as where the child itself calls.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid() if parent is None else parent

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return prepare


def end_with(parent: int) -> None:
    """Tie the life of this process to its parent's; cheap to import for a spawned one before its real work."""
    prepare = die_with_parent(signal.SIGKILL, parent=parent)
    if prepare is not None:
        prepare()


def spawn(
    command: Sequence[str],
    log: Path,
    *,
    account: Account | None = None,
    prepare: Callable[[], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that a Ctrl-C in the terminal does not reach it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=environment,
            user=account.user if account else None,
            group=account.group if account else None,
            extra_groups=account.groups if account else None,
            start_new_session=True,
            preexec_fn=prepare,
        )


def is_running(pid: int, *, names: Sequence[str], folder: Path | None = None) -> bool:
    """Tell whether `pid` is a live process of one of these names (working in `folder`): no zombie, no stranger."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE or process.name() not in names:
            return False
        return folder is None or Path(process.cwd()) == folder.resolve()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def await_ready(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, *, seconds: float) -> None:
    """Wait until `ready`, at most `seconds`; a process that is not ready by then does not outlive the call.

    Raises
    ------
    NotStarted
        when the process ends first, or time is up.
    """
    deadline = time.monotonic() + seconds
    try:
        while not ready():
            if process.poll() is not None:
                raise NotStarted(f"it stopped with status {process.returncode}; {log} ends with\n{tail(log)}")
            if time.monotonic() > deadline:
                raise NotStarted(f"no answer within {seconds:.0f} s; {log} ends with\n{tail(log)}")
            time.sleep(0.02)
    except BaseException:
        process.kill()
        process.wait()
        raise


def halt(
    pid: int | None, process: subprocess.Popen[bytes] | None, signals: Sequence[tuple[signal.Signals, float]]
) -> None:
    """Send each signal in turn, waiting its number of seconds for the process to end, and collect it if it is ours."""
    for number, seconds in signals:
        if pid is None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _ends_within(pid, seconds):
            break
    if process is not None:
        process.wait()


def _ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        # A zombie is gone for us: the parent that has yet to collect it may be another process.
        if _status(pid) in (None, psutil.STATUS_ZOMBIE):
            return True
        time.sleep(0.01)
    return False


def _status(pid: int) -> str | None:
    try:
        return str(psutil.Process(pid).status())
    except psutil.NoSuchProcess:
        return None


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log file."""
    if not log.exists():
        return ""
    with log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = handle.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
