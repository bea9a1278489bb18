"""Alerts: posts new findings to webhooks while the pipeline runs."""
