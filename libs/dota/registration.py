"""The ids of the game's Gymnasium environments: ``gymnasium.make("Five/Mid-v0")``.

Where the package is installed Gymnasium finds them by itself; else ``import dota.gymnasium_env`` registers them, or
``gymnasium.make("dota.gymnasium_env:Five/Mid-v0")``. Of each there is a vectorised form: ``gymnasium.make_vec``.
"""

NAMESPACE = "Five"
# Name of an environment, and the preset that it plays.
ENVIRONMENTS = {"Mid-v0": "laptop-1v1", "Team-v0": "laptop-5v5"}


def register() -> None:
    """Registers what is not registered yet."""
    from gymnasium.envs import registration

    # As a plugin Gymnasium puts the namespace in front.
    prefix = "" if registration.current_namespace == NAMESPACE else f"{NAMESPACE}/"
    for name, preset in ENVIRONMENTS.items():
        if f"{NAMESPACE}/{name}" not in registration.registry:
            registration.register(
                id=prefix + name, entry_point="dota.gymnasium_env:DotaEnv",
                vector_entry_point="dota.gymnasium_vector_env:DotaVectorEnv", kwargs={"preset": preset})
