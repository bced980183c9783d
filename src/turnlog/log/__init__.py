"""What a session is: entries, and pure functions over them. No files, no clock."""
