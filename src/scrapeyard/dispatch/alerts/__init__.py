"""Alerts without Prometheus: rules that the leader evaluates, and the messages that tell of them."""
