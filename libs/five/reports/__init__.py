"""Reports of a run: the HTML page and the TensorBoard event files."""
