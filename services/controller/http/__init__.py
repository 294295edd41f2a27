"""The HTTP server: middleware, authentication, limits, problem details and what all routes share."""
