"""gRPC between the services: one place for limits, deadlines, security, errors and health."""
