"""Training over several devices and machines."""
