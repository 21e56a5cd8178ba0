"""What Scrapeyard is compared with: the ways a team would otherwise run a script behind an HTTP call."""
