"""Producers of operations: by HTTP, with an acknowledgement, or by UDP, without one."""
