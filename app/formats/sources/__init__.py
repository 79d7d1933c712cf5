"""Files of every container as streams of records with their line numbers."""
