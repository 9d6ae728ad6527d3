"""The agent: one asyncio process that takes operations in and streams them out. It keeps no state."""
