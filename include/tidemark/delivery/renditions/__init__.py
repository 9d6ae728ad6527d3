"""Outputs whose times readers read, as deliveries keep them: rendition, digests, frontier."""
