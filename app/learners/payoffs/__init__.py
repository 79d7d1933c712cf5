"""From pseudo-outcomes to payoffs at any context, and to lotteries.

regression    weighted regressions of many targets: trees or a ridge
second_stage  the offset form, the paper's, and the choice between them
contextual    outcome models, aggregator and second stage together
policy        the amortised equilibrium
"""
