"""Messages between the processes of a cluster: the .proto files, and the modules made of them."""
