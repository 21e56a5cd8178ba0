"""Runs the revisions on the connection that `scrapeyard.store.database.migrate` holds, inside its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
