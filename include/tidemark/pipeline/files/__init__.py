"""Files that declare something: their YAML with the lines of its keys, and what is said of a refused one."""
