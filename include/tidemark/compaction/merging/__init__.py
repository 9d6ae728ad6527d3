"""Merging: small files of closed segments become larger ones. No message is dropped."""
