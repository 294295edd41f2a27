"""The policy network (Berner et al. 2019, appendix H): a team's observations in, its heroes' actions and values out."""
