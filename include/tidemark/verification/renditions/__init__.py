"""Comparison of a new rendition with the one that readers use, before readers are handed over to it."""
