"""Rankings read from snapshots: what is asked, what is stored, what is answered."""
