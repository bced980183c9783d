"""What is known of the agents on this machine."""
