"""The command line: a thin layer over the functions that DAG tasks call."""
