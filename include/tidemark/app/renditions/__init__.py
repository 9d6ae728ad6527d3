"""Renditions of a writer, as commands and DAG tasks change them: what would happen, and how it is done."""
