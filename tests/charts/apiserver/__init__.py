"""In-memory subset of the Kubernetes API that is large enough for helm to install, upgrade and remove a release.

It refuses what the real API server refuses and what breaks upgrades: changed immutable fields, field ownership
conflicts, objects that already exist. Nothing runs: the only controllers create and delete volume claims, and pods are
marked Succeeded at once. A passing `helm test` here therefore does not test the containers.

The scope is frozen. Behaviour outside it is tested on a real cluster (`make test-cluster`, which needs a KUBECONFIG).
"""
