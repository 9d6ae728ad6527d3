"""Values and rules of a work journal. Pure."""
