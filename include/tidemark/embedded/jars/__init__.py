"""The jars of the embedded services: resolved, locked, fetched."""
