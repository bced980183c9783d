"""This machine: the only room that reads the environment, the home directory and `/proc`."""
