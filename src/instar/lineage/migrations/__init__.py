"""The scripts that Alembic runs to bring the tables of a database up to date."""
