"""The log's state in the control plane."""
