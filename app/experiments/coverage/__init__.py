"""Do simultaneous 95% intervals cover the truth, and are they as narrow as they can be?

Beside every estimate stands the one-step with the true nuisances on the same draws: an interval that covers only
because it is wide is told by its width, a noisy estimate by its error (cf. DMLRank, arXiv 2601.21816, Table 1). Beside
every rule of the estimator stands a control that ignores it, and the control must fail.

bars      what a cell must show
measure   what one replicate says
cells     what all replicates say together
case      a kind of board with the rules it is read by
settings  the cases by name; each in a module of its own
run       replicates over processes
report    table, JSON, plot
"""
