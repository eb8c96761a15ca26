"""What Alembic runs. The connection comes from `server.store.migrate`, which also decides about transactions."""

from alembic import context

from server.store.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite can take back DDL too, as long as the driver does not commit before it (server.store.engine).
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
