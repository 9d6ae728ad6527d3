"""Outputs of writers: renditions, the handovers between them, and the readers that hold old times."""
