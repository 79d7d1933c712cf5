"""What votes, refits, updates and reads cost as boards grow: the whole service, over HTTP."""
