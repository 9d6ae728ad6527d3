"""Tasks of the DAGs as decorated functions, and the rules that several of them share."""
