"""Games: live viewing, recordings, requested matches, draft analysis, and web sockets of people who play."""
