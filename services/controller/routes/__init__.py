"""The routes of the REST API under /v1: one router per resource. The CLI and curl use the same routes."""
