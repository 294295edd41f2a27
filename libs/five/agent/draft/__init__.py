"""Drafting by win probability (Berner et al. 2019, appendix on drafting).

``subsets`` numbers sets of heroes, and ``leaves`` numbers the line-ups of a pool and stores their win probabilities.
``table_filters`` keeps the part of a table that a pick or ban leaves. ``pick_order`` defines who picks when. ``solver``
solves a draft by dynamic programming over sets, and ``advice`` values each pick in a partial draft. ``evidence`` counts
how often pairs of heroes were played and how well the win head is calibrated. ``summary`` combines both.
"""
