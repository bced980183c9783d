"""The index of our own sessions in a database, in tables beside them: made once for all machines."""
