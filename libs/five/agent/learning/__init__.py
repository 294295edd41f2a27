"""Learning: advantages, PPO, the gradient clip, the learner and its buffer."""
