"""The built-in kinds of writers, one sub-package each, and what they share."""
