"""The command line: a thin layer over the functions the DAGs call."""
