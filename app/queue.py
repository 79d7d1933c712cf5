"""Names of the tasks and the port that sends them.

A message only wakes a worker: what there is to do is derived from PostgreSQL, so that a lost one costs a few
seconds, until the next sweep.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from celery import Celery
from kombu.exceptions import OperationalError

REFIT = "orthorank.refit"
"""Refit one board: `(board_id)`."""

LIVE = "orthorank.live"
"""Take a board's new votes into its rankings: `(board_id)`."""

SWEEP = "orthorank.sweep"
"""Look for boards and jobs that lag, and send what they need: no argument."""

TASKS = "orthorank.tasks"
"""Make tasks of a refit that another worker leads: `(batch_id)`."""

SLOW, QUICK, SHARED = "slow", "quick", "shared"
ROUTES = {REFIT: {"queue": SLOW}, LIVE: {"queue": QUICK}, SWEEP: {"queue": QUICK}, TASKS: {"queue": SHARED}}
WAITS = 10.0
"""Seconds after which a message about tasks goes away: while they wait, others follow."""

logger = logging.getLogger(__name__)


class Queue(Protocol):
    """Where a use case leaves word, after its commit, that there is work."""

    def refit(self, board_id: int) -> None:
        """Wake a worker to refit the board."""
        ...

    def live(self, board_id: int) -> None:
        """Wake a worker to take the board's new votes into its rankings."""
        ...


@dataclass(frozen=True, slots=True)
class CeleryQueue:
    """Sends through Celery. A broker that is away costs a warning, never the request."""

    celery: Celery

    def refit(self, board_id: int) -> None:
        """Wake a worker to refit the board."""
        self._send(REFIT, board_id)

    def live(self, board_id: int) -> None:
        """Wake a worker to take the board's new votes into its rankings."""
        self._send(LIVE, board_id)

    def tasks(self, batch: UUID) -> None:
        """Wake a worker to make tasks of the batch, if it is free."""
        self._send(TASKS, str(batch), expires=WAITS)

    def _send(self, task: str, argument: int | str, *, expires: float | None = None) -> None:
        try:
            self.celery.send_task(task, (argument,), retry=False, expires=expires)
        except OperationalError as error:
            logger.warning("%s not sent, the next sweep makes up for it: %s", task, error)


def open_celery(redis_url: str) -> Celery:
    """Return a Celery application that knows the broker and the routes, and no task."""
    celery = Celery("orthorank", broker=_broker(redis_url), set_as_current=False)
    celery.conf.update(
        task_ignore_result=True,
        task_routes=ROUTES,
        task_default_queue=QUICK,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_connect_timeout": 5, "socket_keepalive": True},
    )
    return celery


def _broker(redis_url: str) -> str:
    """Celery's name of a unix socket differs from that of redis-py."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    return f"redis+socket://{path}?{query.replace('db=', 'virtual_host=')}"
