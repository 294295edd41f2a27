"""Games: live viewing, recordings, matches on request, drafts, and people's sockets."""
