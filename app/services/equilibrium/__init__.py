"""Who wins where: equilibria of a board, of its segments, and of single contexts."""
