"""The rules of streams: vectors, ids of events, the ring, joining and resuming. Pure."""
