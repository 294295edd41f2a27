"""Clients of Five's services, and the wire format of their arrays. They know names and shapes, and no game rules."""
