"""A worker's tasks share its threads: what limits the linear algebra holds for all of them, and stays."""

from __future__ import annotations

from dataclasses import replace

from threadpoolctl import threadpool_info, threadpool_limits

from app.settings import DatabaseSettings, RedisSettings, load_settings
from workers.main import create_worker


def test_a_worker_multiplies_matrices_on_one_thread() -> None:
    settings = replace(
        load_settings(),
        database=DatabaseSettings(url="postgresql://127.0.0.1:1/none"),
        redis=RedisSettings(url="redis://127.0.0.1:1/0"),
    )
    with threadpool_limits(2, user_api="blas"):
        create_worker(settings)
        found = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert found
    assert set(found) == {1}
