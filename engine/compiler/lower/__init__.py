"""From the operations of a cluster to a loop program."""
