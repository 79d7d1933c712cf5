"""A refit: gather, decide what counts, fit, score, keep one snapshot."""
