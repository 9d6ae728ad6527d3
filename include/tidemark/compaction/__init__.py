"""Compaction of the commit log: what may go, the plan, the proof, and the order of the steps."""
