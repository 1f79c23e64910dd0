"""Files and their contents: records, comma-separated values, images."""
