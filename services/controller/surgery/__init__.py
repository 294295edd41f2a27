"""Surgery plans, their history and rehearsals, and reverts."""
