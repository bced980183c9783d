"""Entries and lines whose content was erased."""
