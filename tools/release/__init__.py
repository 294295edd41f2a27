"""Release of a version: checks, git tag, images, chart, SBOMs, signatures, checksums and notes (docs/releases.md)."""
