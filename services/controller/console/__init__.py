"""The console: a run's web pages and their login sessions. The source is in console/, the build in built/."""
