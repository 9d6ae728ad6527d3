"""The ``files`` writer."""
