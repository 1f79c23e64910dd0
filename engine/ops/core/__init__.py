"""What all ops stand on: the table, dispatch, elementwise rows, and what every graph has."""
