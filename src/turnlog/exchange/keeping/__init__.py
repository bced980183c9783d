"""Files of other agents, kept: compressed copies that stay when the agents delete theirs.

retention              how long agents leave their sessions alone
run                    everything new in the folders of the chosen agents
keptfile · keptframe   the copies of a home; how one is written and read
"""
