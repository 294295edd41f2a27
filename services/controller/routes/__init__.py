"""The REST API of a run, under /v1: one router a resource. What can be done here, `five` and curl can do."""
