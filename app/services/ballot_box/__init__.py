"""Single votes of all connections, gathered and committed together."""
