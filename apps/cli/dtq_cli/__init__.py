"""The command ``dtq``."""
