"""The runtime of clusters: masters and workers, and the sessions that run on them."""
