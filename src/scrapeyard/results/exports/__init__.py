"""Files made of a job: what rows they have, and how each format is written."""
