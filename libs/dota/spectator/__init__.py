"""Games to be watched: what a spectator sees as numbers, in chunks of about four seconds, live and in files."""
