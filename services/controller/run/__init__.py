"""The run as a whole: creation, status reconciliation, environment servers and ratings."""
