"""What streams are read from: the topic, its commit log, and the collection of its objects."""
