"""The jars that the embedded services run from: resolved, locked, fetched."""
