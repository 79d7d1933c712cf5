"""Who computes the tasks of a refit: the worker itself, its processes, workers on other machines."""
