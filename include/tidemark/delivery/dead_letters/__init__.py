"""Dead letters: copies of messages that were acknowledged without being written."""
