"""Programs that generate committed files; run as `python -m tools.NAME` from a checkout."""
