"""The loop: data, steps, losses and metrics of a compiled model, and what resumes it."""
