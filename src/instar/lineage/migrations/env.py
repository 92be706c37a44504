"""How Alembic runs the scripts: on the connection, and in the transaction, that `migrate` gives it."""

from alembic import context

from instar.lineage.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=False,  # the transaction is the caller's
)
context.run_migrations()
