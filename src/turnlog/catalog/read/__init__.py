"""What reads a session into the catalog: ours, or that of another agent where it lies."""
