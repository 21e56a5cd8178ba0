"""Tools for those who write scrapers: recording, replaying, certifying."""
