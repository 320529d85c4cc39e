"""The web page: what a deployment does, and what an operator may do about it."""
