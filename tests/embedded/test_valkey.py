"""Our launcher of Valkey."""

from __future__ import annotations

import os
import signal
import socket
import stat
import time

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError

from app.embedded.valkey import ValkeyServer


def kill(server: ValkeyServer) -> None:
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while server.alive():
        time.sleep(0.01)


def test_it_asks_for_a_password_that_only_the_owner_can_read(valkey: ValkeyServer) -> None:
    valkey.start()
    with Redis.from_url(valkey.url) as client:
        assert client.ping()
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("bind") == {"bind": "127.0.0.1"}
        port = client.connection_pool.connection_kwargs["port"]
    with Redis(port=port) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()
    assert stat.S_IMODE((valkey.state.valkey / "valkey.conf").stat().st_mode) == 0o600


def test_a_killed_server_comes_back_at_its_address_with_its_data(valkey: ValkeyServer) -> None:
    valkey.start()
    url = valkey.url
    with Redis.from_url(url) as client:
        client.set("key", "value")
        # The file is synced once a second.
        time.sleep(1.2)
    kill(valkey)
    valkey.start()
    assert valkey.url == url
    with Redis.from_url(url) as client:
        assert client.get("key") == b"value"


def test_a_second_start_adopts_the_server(valkey: ValkeyServer) -> None:
    valkey.start()
    other = ValkeyServer(valkey.state)
    other.start()
    assert other.pid == valkey.pid


def test_a_port_that_was_taken_meanwhile_is_given_up(valkey: ValkeyServer) -> None:
    valkey.start()
    before = valkey.url
    valkey.stop()
    assert not valkey.alive()
    with socket.create_server(("127.0.0.1", int(before.rsplit(":", 1)[1].split("/")[0]))):
        valkey.start()
        assert valkey.url != before
        with Redis.from_url(valkey.url) as client:
            assert client.ping()
