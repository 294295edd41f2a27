"""The run as a whole: creating it, reconciling its status, its services and ratings."""
