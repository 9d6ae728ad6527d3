"""One file per kind of writer: what puts messages of the log somewhere."""
