"""Long-running operations on a run: their documents, and the engine that advances them."""
