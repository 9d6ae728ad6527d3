"""Rows of a collection as cells and as Python values, and stored cells as rows."""
