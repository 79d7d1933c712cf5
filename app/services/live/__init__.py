"""Votes that come in between two refits: into the rankings within a second, scored with what the last refit found."""
