"""The pages, one file each: what it reads, and what can be done on it."""
