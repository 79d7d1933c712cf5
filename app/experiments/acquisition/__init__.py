"""Does a policy that chooses pairs make scores more certain than one that does not, and are they still right?

labelling   contexts that come in, and the labels that a policy takes on them
policies    by name: what each makes of the labels so far
figures     what replicates say of a policy, and the ratios that tell two apart
table2      two stages at the paper's budget (DMLRank, arXiv 2601.21816, Table 2)
oracle      policies from estimated preferences against the one from the true ones
criteria    whether D-, E-optimal and contrast weights do what they are for
rounds      coverage after three rounds of choosing, labelling and fitting again
report      table, JSON, plot
"""
