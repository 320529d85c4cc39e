"""Whether a Redis, and what works on it, are fit to be relied on."""
