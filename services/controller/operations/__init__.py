"""Long calls on a run: documents of what is under way, and the engine that advances them."""
