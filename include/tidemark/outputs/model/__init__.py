"""Values and rules of renditions, handovers and readers. Pure: no I/O, no clock."""
