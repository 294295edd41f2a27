"""Capacity model of a cluster: measured inputs, traffic of each link, behaviour of the autoscaler."""
