"""The contextual Davidson model with boosted utilities."""
