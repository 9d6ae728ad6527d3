"""Compare-and-set on versioned objects: the one way to change the control plane."""
