"""What can go wrong with an embedded server.

EmbeddedError
├── NotInstalled   no server program that this machine can run
├── BadFolder      the state folder does not suit the account of the servers
└── NotStarted     the server did not come up; its last log lines are in the message
"""

from __future__ import annotations


class EmbeddedError(Exception):
    """Base of every error of the embedded servers; the message says how to mend it."""


class NotInstalled(EmbeddedError):
    """No usable program of the server was found."""


class BadFolder(EmbeddedError):
    """The state folder cannot be used by the account that runs the servers."""


class NotStarted(EmbeddedError):
    """The server stopped, or did not answer in time."""
