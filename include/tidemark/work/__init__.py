"""The work journal: work to be done, merged by key, in order of priority and date, thrown away in buckets."""
