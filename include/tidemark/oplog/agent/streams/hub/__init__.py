"""The hub: it follows the topic for all clients of an agent."""
