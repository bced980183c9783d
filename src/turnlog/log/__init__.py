"""What a session is: entries, and pure functions over them. No files, no clock.

block · usage · entry   the values
ids                     their names
codec · assemble        lines to entries and back; batches, order, damage
draft · payload         from a caller's value to a line; big payloads to blobs and back
fold · context          entries to state; a path to what a model sees
secret                  what never gets into a fact
"""
