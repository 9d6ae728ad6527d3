"""The bindings of a log, wherever they are: rows of the control plane, or lists in the log's folder."""
