"""The domain of dtq and its Redis: states, records, limits, scripts, connections."""
