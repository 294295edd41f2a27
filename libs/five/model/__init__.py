"""The policy network (Berner et al. 2019, appendix H): observations of a team in, actions and values of its heroes out."""
