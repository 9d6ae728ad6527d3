"""State of writers in the control plane: positions, gates, leases, offset logs."""
