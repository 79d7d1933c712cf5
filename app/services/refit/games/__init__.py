"""Who wins where, found at a refit: mean payoffs of board and segments, payoffs and lotteries of contexts."""
