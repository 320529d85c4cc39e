"""The main job of dtq, end to end: a folder of real files, and a worker killed on the way."""
