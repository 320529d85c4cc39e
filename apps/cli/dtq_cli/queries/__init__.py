"""What the commands ask that takes several reads."""
