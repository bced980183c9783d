"""Hooks of agents: each call is recorded in its session. A hook never fails, and takes a few seconds at most."""
