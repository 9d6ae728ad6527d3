"""Envelopes: what a message's value says about the row of its key. One module each; ``registry`` has all."""
