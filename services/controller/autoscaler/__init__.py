"""Autoscaling of the rollout and inference Deployments of a cluster."""
