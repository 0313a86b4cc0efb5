"""Read the inputs, send rows to their owners, and build the data of the loop."""
