"""What the parts of an exported file are called."""

CLASS_NAME = "ExportedModel"
FORMAT = 1
VARIABLES = "variables"
# Objects, of which number 0 is the whole: each is a variable, or has parts and functions by name.
OBJECTS = "objects"
VARIABLE, PARTS, FUNCTIONS = "variable", "parts", "functions"
