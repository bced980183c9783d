"""What a caller passes to the methods that append a message."""
