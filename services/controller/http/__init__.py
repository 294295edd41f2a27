"""The HTTP server: middleware, authentication, limits, problem details, and helpers shared by all routes."""
