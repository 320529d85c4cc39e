"""What operators ask of a whole deployment, each answer made of several reads."""
