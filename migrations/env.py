"""Run by Alembic. The caller hands over a connection, so that one place decides the URL and the lock time-out."""

from alembic import context

from app.db.models import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()
