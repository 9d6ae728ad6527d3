"""The ``kafka`` writer."""
