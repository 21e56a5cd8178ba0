"""Delivers the results of jobs to where a team's data lives, while the jobs run."""
