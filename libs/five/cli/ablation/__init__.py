"""`five ablate`: arms that differ by configuration, several seeds each, equal budgets, one table and one page."""
