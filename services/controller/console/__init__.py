"""The console: the web page of a run, and who is logged in to it. Its source is in console/, built into built/."""
