"""Variables cut into pieces, one for each process of a mesh, and steps that compute with those."""
