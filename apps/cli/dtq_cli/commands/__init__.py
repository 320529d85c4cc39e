"""The sub-commands, one a file; each is imported only when it is run."""
