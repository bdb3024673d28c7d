"""Topics, partitions and leaders as data, and each broker's view of them."""
