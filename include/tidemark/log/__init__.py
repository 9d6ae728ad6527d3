"""The commit log: bindings, ids, manifest and the files they name."""
