"""PostgreSQL and Valkey without an installation: our own launcher for the programs that two wheels bring."""
