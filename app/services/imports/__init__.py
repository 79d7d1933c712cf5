"""Import files: the same file, imported again, adds nothing."""
