"""What an operator does to writers and pipelines: plans first, then actions on record."""
