"""Files of other programs: their JSON, records and databases read as far as they go, files of ours put among theirs."""
