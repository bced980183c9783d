"""Reading sessions into the catalog: ours, and those of other agents in place."""
