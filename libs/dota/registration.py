"""Gymnasium ids of the environments: ``gymnasium.make("Five/Mid-v0")``.

Gymnasium finds them when the package is installed. Otherwise ``import dota.gymnasium_env`` registers them, or
``gymnasium.make("dota.gymnasium_env:Five/Mid-v0")``. Each has a vectorised form for ``gymnasium.make_vec``.
"""

NAMESPACE = "Five"
# Name of an environment, and the preset that it plays.
ENVIRONMENTS = {"Mid-v0": "laptop-1v1", "Team-v0": "laptop-5v5"}


def register() -> None:
    """Register the environments that are not registered yet."""
    from gymnasium.envs import registration

    # Gymnasium adds the namespace to plugins' names.
    prefix = "" if registration.current_namespace == NAMESPACE else f"{NAMESPACE}/"
    for name, preset in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registration.registry:
            registration.register(
                id=prefix + name, entry_point="dota.gymnasium_env:DotaEnv",
                vector_entry_point="dota.gymnasium_vector_env:DotaVectorEnv", kwargs={"preset": preset})
