"""gRPC between the services: limits, deadlines, security, errors and health."""
