"""What the Python processes of a Spark Connect server load before any session's code.

A package of its own, because the library itself must not be loaded there: a module that is loaded before a
worker is forked would be used instead of the one that a session has sent.
"""
