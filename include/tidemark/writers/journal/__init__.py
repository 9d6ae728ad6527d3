"""The ``journal`` writer."""
