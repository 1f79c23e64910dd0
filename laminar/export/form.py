"""What the parts of an exported file are called."""

CLASS_NAME = "ExportedModel"
FORMAT = 1
VARIABLES = "variables"
