"""Outputs and readers in the control plane: two objects a writer, changed by compare-and-set only."""
