"""Drafting by win probability (Berner et al. 2019, appendix on drafting): what each line-up is worth, and who to pick.

``subsets`` numbers sets of heroes, ``leaves`` the line-ups of a pool, ``narrowing`` keeps of a table what a pick or ban
leaves, ``order`` says who picks when, ``tree`` solves a draft by dynamic programming over sets, ``advice`` answers
where a draft stands, ``evidence`` says what is known of the number: how often pairs of heroes were played, and how
often the win head was right. ``briefing`` tells both together.
"""
