"""Topics, partitions and their leaders, as data, and the view that one broker has of them."""
