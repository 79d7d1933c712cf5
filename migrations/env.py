"""Run by Alembic. The caller hands over a connection, so that one place decides the URL and the lock time-out."""

from alembic import context

import app.db.models  # noqa: F401 - every table is known then
from app.db.schema import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()
