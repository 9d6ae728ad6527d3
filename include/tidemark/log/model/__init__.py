"""Values of the commit log: bindings, manifests, losses, gates. Nothing here does I/O."""
