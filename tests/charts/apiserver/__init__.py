"""As much of the Kubernetes API, in memory, as helm installs, upgrades and removes a release with.

It refuses what the real one refuses and what upgrades break on: fields that may not change, fields that somebody else
owns, objects that are there already. Nothing runs: the only controllers are those that make and remove claims, and
pods are born as succeeded, so that a `helm test` that passes here proves nothing of what it tests.

Frozen: it is not extended. What it does not know is a story for a cluster, and so are those that it tells
(`make test-cluster`, which takes a KUBECONFIG).
"""
