"""What a cluster of a given size carries: measured figures, the traffic on each link, the autoscaler's behaviour."""
