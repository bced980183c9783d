"""What a home knows of its sessions beyond their logs: how they are created, marked, renamed, handed over."""
