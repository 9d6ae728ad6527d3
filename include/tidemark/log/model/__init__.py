"""Values of the commit log: bindings, manifests, losses, gates. Pure."""
