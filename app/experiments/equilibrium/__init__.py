"""Who wins where: contextual equilibria against models that assume an order, and against lotteries for all contexts.

methods         what each method makes of the same votes
cells           boards of an electorate whose preferences have cycles
table           every method on every kind of feedback
strength        strengths of the regulariser, budgets
orthogonality   how errors of the nuisances pass on
speed           what solvers cost
serving         what an answer costs by the policy
"""
