"""DMLRank's classifier: boosted trees on the covariates, both items and the judges' margins."""
