"""What handles stand for besides variables: queues and the like, free of graphs."""
